"""Where real recordings are, and what is skipped where they are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TEST_DATA = Path(os.environ.get("CLOCS_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
"""The folder of real recordings: CLOCS_TEST_DATA, or the one beside the checkout."""


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real recordings. Skips where it is absent."""
    if not TEST_DATA.is_dir():
        pytest.skip("no real recordings here: set CLOCS_TEST_DATA to a folder that has them")
    return TEST_DATA


@pytest.fixture(autouse=True)
def _no_data_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A test that forgets --data-root must not read or write the user's own data."""
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path_factory.getbasetemp() / "data-root"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none, with a reason."""
    if not any(item.get_closest_marker("cuda") for item in items):
        return
    import torch

    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("cuda"):
                item.add_marker(pytest.mark.skip(reason="torch finds no NVIDIA GPU"))
