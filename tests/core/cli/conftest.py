"""A folder to type commands in, and the commands, in this process or in one of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from clocs_process import run_clocs


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


@pytest.fixture(params=["here", pytest.param("process", marks=pytest.mark.slow)])
def type_command(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command by its function, and as a slow test in a process of its own, which imports torch first."""

    def here(*words: str) -> subprocess.CompletedProcess[str]:
        from clocs_core.cli import main

        code = main(list(words))
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, said.out, said.err)

    return here if request.param == "here" else run_clocs
