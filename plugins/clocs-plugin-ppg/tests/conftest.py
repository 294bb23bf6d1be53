"""Fixtures: the real recordings, and synthetic data sets in the published formats."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from made_bidmc import write_bidmc
from made_ppg_bp import write_ppg_bp


@pytest.fixture(scope="session")
def real_ppg_bp() -> Path:
    """The published PPG-BP. Skip if CLOCS_TEST_DATA does not contain it."""
    place = os.environ.get("CLOCS_TEST_DATA")
    if not place or not (Path(place) / "ppg_bp").is_dir():
        pytest.skip("no real PPG-BP here: set CLOCS_TEST_DATA to a folder that has ppg_bp/")
    return Path(place) / "ppg_bp"


@pytest.fixture(scope="session")
def made_ppg_bp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve subjects in the format of PPG-BP."""
    return write_ppg_bp(tmp_path_factory.mktemp("ppg-bp"))


@pytest.fixture(scope="session")
def made_bidmc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten recordings in the format of BIDMC, a minute each."""
    return write_bidmc(tmp_path_factory.mktemp("bidmc"))
