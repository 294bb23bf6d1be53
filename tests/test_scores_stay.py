"""Scores are those of before `clocs run` and `clocs evaluate` had one path, to the last digit.

tests/golden/scores.json holds them with the commands that made them. Those of linear evaluation were made anew once,
when a solver that reaches the optimum took the place of scikit-learn's, which stopped before it. Where processor and
libraries are the same, every digit must be; elsewhere networks round otherwise, and scores may differ by as much as
rounding moves them.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from filelock import FileLock

GOLDEN = json.loads((Path(__file__).parent / "golden" / "scores.json").read_text(encoding="utf-8"))
SUPPORT = Path(__file__).parent / "support"
PROGRAM = """
import json, sys
from no_pictures import without_pictures
from clocs_core.cli import main
with without_pictures():
    for words in json.loads(sys.argv[1]):
        assert main(words) == 0, words
"""
# Of a score, where another processor rounds the network otherwise. F1 and calibration count the frames on one side of a
# threshold: a frame that lies on it moves them more than it moves a ranking (0.028 from AVX-512 to a Neoverse-N1).
ROUNDING = {"auroc": 0.02, "auprc": 0.02, "f1": 0.05, "calibration": 0.05}

REPORTS = {report["name"]: report for report in GOLDEN["reports"]}


def this_machine() -> dict[str, str]:
    libraries = {name: version(name) for name in ("torch", "numpy", "scipy", "scikit-learn")}
    cpu = torch.backends.cpu.get_cpu_capability()
    return {"machine": platform.machine(), "cpu": cpu, **libraries, "torch": torch.__version__}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, worker_id: str, test_data: Path) -> Path:
    """All runs and evaluations, each in a folder of its name. The processes of pytest share them: they take minutes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "golden"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            folder.mkdir()
            make_all(folder, test_data)
    return folder


def make_all(folder: Path, test_data: Path) -> None:
    """Give all commands in one process, without pictures."""
    places = {name: str(folder / name) for name in REPORTS}
    commands = [
        [*report["command"].format(data=test_data, **places).split()[1:], "--device", "cpu", "--out", places[name]]
        for name, report in REPORTS.items()
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CLOCS_DATA": str(folder / "data"), "PYTHONPATH": str(SUPPORT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr


def numbers(rows: list[dict[str, object]], fields: tuple[str, ...]) -> list[list[object]]:
    return [[row[field] for field in fields] for row in rows]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", REPORTS)
def test_scores_and_differences_are_those_of_before(made: Path, name: str) -> None:
    found = json.loads((made / name / "report.json").read_text(encoding="utf-8"))
    exact = this_machine() == GOLDEN["machine"]
    scores = ("protocol", "init", "label_fraction", "metric", "level", "value", "low", "high")
    differences = ("a", "b", "protocol", "label_fraction", "metric", "level", "difference", "low", "high")
    for kind, fields in (("scores", scores), ("comparisons", differences)):
        rows, before = numbers(found[kind], fields), REPORTS[name][kind]
        assert len(rows) == len(before) > 0
        for mine, theirs in zip(rows, before, strict=True):
            assert mine[:-3] == theirs[:-3]
            if exact:
                assert mine[-3:] == theirs[-3:]
            else:
                assert math.isclose(mine[-3], theirs[-3], abs_tol=ROUNDING[str(mine[fields.index("metric")])])
