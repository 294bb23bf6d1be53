"""A folder to type commands in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder to work in, with a run in it whose encoder never trained."""
    from fake_encoders import installed, plan_of, write_encoder  # imports torch

    folder = tmp_path / "here"
    (folder / "run").mkdir(parents=True)
    write_encoder(folder / "run", plan_of(installed()))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    return folder
