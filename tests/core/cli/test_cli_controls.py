"""`clocs evaluate --controls`, as two processes at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from evaluation_files import held


@pytest.mark.slow
def test_two_processes_at_once_make_each_control_once_and_agree(tmp_path: Path) -> None:
    """By the program itself: neither makes what the other is making, nor reads half of it."""
    command = "evaluate --random --encoder cnn --embedding-dim 8 --dataset demo --protocol finetune --epochs 3"
    more = "-o resamples=10 -o patients=12 --device cpu --workers 1 --label-fraction 0.5,1 --controls c"
    environ = os.environ | {"CLOCS_DATA": str(tmp_path / "data"), "OMP_NUM_THREADS": "1"}
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "clocs_core", *command.split(), *more.split(), "--out", out],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environ,
        )
        for out in ("a", "b")
    ]
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum(err.count(": taken from c") for _, err in said) == 4
    first, second = (json.loads((tmp_path / out / "report.json").read_text()) for out in ("a", "b"))
    for one in (first, second):
        del one["seconds"], one["digest"], one["date"], one["command"]
    assert sum(err.count("trained for ") for _, err in said) == 2  # F = 0.5 and 1, each by one of the two
    assert all("(score 0." in line for _, err in said for line in err.splitlines() if "trained for " in line)
    assert first == second  # seconds of the cells too: each was made by one of the two
    assert held(tmp_path / "a") == held(tmp_path / "b")
    assert first["curves"][0]["metric"] == "auroc"
    assert len([path for path in (tmp_path / "c").iterdir() if path.is_dir()]) == 4
