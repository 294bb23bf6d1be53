"""Pre-train and evaluate on PTB-XL as its benchmark does: folds 1-8 / 9 / 10, six tasks, one vector per recording.

    python benchmarks/ptbxl.py --root $CLOCS_DATA/ptbxl --out runs/ptbxl --json benchmarks/results/ptbxl/all.json
    python benchmarks/ptbxl.py --root $CLOCS_DATA/ptbxl --out runs/ptbxl --part validation --rows mine.toml

The rows of the table are in benchmarks/ptbxl.toml: a method with an encoder and settings, and its seeds. Each is
pre-trained on folds 1-8 once for each seed, without labels but for `supervised`; then the frozen encoder is evaluated
by a linear model on one vector per recording (`linear-record`, C chosen on fold 9), task by task, beside the same
encoder untrained.
`--part validation` scores fold 9 instead, with C = 0.01, to choose settings without looking at fold 10. Both can share
`--out`: a run that is chosen is not trained again. A row can ask for more evaluations. What is finished is not done
again.

The figures are macro AUROC of recordings, with the mean over seeds and its interval over seeds and patients. With
`--against NAME`, they are followed by how far that row is above each of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
import torch
from command_line import command_line
from ptbxl_rows import (
    HERE,
    IDENTIFICATION,
    TASKS,
    TEST_FOLD,
    Place,
    Row,
    evaluation_folder,
    evaluations,
    is_finished,
    read_rows,
)
from ptbxl_scores import compare, score_of, summarise

import clocs_core as clocs
from clocs_core.grids.machine import describe_machine

COMMON: dict[str, object] = {"autocast": "bf16", "batch_size": 256}
"""Settings of every pre-training, unless a row has others."""
FRAMES: dict[str, dict[str, object]] = {
    "whole": {"frame_samples": 1000, "frames_per_record": 1},
    "halves": {"frame_samples": 500, "frames_per_record": 2},
    "quarters": {"frame_samples": 250, "frames_per_record": 4},
}
"""Frames of a recording of 10 s at 100 Hz."""
QUICK: dict[str, object] = {"permutations": 0, "metrics": "auroc", "pictures": False}


def main() -> int:
    """Make the runs that are missing, score them, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder of PTB-XL")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--part", choices=("validation", "test"), default="test", help="score fold 9, or fold 10")
    parser.add_argument("--test-fold", type=int, default=TEST_FOLD, help="fold that tests: 10, or one of 1 to 8")
    parser.add_argument("--also", nargs="*", default=[], metavar="PROTOCOL", help="protocols to evaluate every row by")
    parser.add_argument("--rows", type=Path, default=HERE / "ptbxl.toml", help="file with the rows")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="rows to make; default: all")
    parser.add_argument("--without", nargs="*", default=[], metavar="NAME", help="rows to leave out")
    parser.add_argument("--tasks", nargs="*", default=TASKS, metavar="TASK", help="tasks to evaluate; default: all six")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of each row; default: as many as the row says")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the GPU")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--until", type=float, default=float("inf"), help="start no run after so many seconds")
    parser.add_argument("--against", metavar="NAME", help="say how far this row is above the others")
    parser.add_argument("--json", type=Path, help="write the table here")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "SEED"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    tasks, also = tuple(given.tasks), tuple(given.also)
    place = Place(given.root, given.out, given.part, given.device, tasks, given.test_fold, also)
    rows = [row for row in read_rows(given.rows) if not given.only or row.name in given.only]
    rows = [attrs.evolve(row, seeds=given.seeds or row.seeds) for row in rows if row.name not in given.without]
    if given.against and given.against not in [row.name for row in rows]:
        parser.error(
            f"--against {given.against!r}: there is no such row. There are: {'; '.join(r.name for r in rows)}."
        )
    if given.one:
        name, seed = given.one
        make(next(row for row in rows if row.name == name), int(seed), place)
        return 0
    failed = _make_all(rows, place, given.jobs, given.until)
    table = {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "part": given.part,
        "test_fold": given.test_fold,
        **_machine(),
        "failed": failed,
        "rows": [found for row in rows if (found := summarise(row, place))],
    }
    if given.against:
        first, by_name = next(row for row in rows if row.name == given.against), {row.name: row for row in rows}
        others = [name for found in table["rows"] if (name := found["name"]) != first.name]
        table |= {"against": first.name, "above": {name: compare(first, by_name[name], place) for name in others}}
    print(_as_text(table))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


def _make_all(rows: list[Row], place: Place, jobs: int, until: float) -> dict[str, str]:
    """Make every run in a process of its own, first seeds first; return why some failed, by name."""
    work = sorted(((seed, row.name) for row in rows for seed in range(row.seeds)), key=lambda one: one[0])
    began, failed = time.monotonic(), {}
    # Threads of one run must not wait, in a loop, for those of another.
    threads = max(1, (os.cpu_count() or 1) // (2 * jobs))
    alone = {"OMP_NUM_THREADS": str(threads), "GOMP_SPINCOUNT": "0", **os.environ}

    by_name = {row.name: row for row in rows}

    def one(seed: int, name: str) -> subprocess.CompletedProcess[str] | None:
        if time.monotonic() - began > until and not is_finished(by_name[name], seed, place):
            return None
        call = [sys.executable, *sys.argv, "--one", name, str(seed)]
        return subprocess.run(call, capture_output=True, text=True, check=False, env=alone)

    with ThreadPoolExecutor(jobs) as pool:
        asked = {pool.submit(one, seed, name): f"{name}, seed {seed}" for seed, name in work}
        for number, done in enumerate(as_completed(asked), start=1):
            what, ended = asked[done], done.result()
            if ended is None or ended.returncode:
                last = ["not finished: time was up"] if ended is None else ended.stderr.strip().splitlines()
                failed[what] = " ".join(last[-3:])
            shown = failed.get(what) or ended.stdout.strip()  # type: ignore[union-attr]
            print(f"{time.monotonic() - began:5.0f} s, {number} of {len(work)}: {what}: {shown}", flush=True)
    return failed


def make(row: Row, seed: int, place: Place) -> None:
    """Pre-train a row with a seed and evaluate it; finished parts are opened only."""
    folder = place.folder(row, seed)

    def data(task: str) -> Any:
        return clocs.dataset("ptbxl", root=place.root, task=task, split="published", test_fold=place.test_fold)

    began = time.monotonic()
    settings: dict[str, Any] = {
        **COMMON,
        **FRAMES[row.frames],
        **QUICK,
        "part": "validation",  # one pre-training serves both folds, and looks at fold 10 for neither
        "resamples": 1,
        **row.options,
    }
    settings |= {"seed": seed, "encoder": row.encoder, "device": place.device}
    run = clocs.pretrain(row.method, data(row.task), out=folder, progress=False, **settings)
    trained = time.monotonic()
    shown = []
    for number, how in enumerate(evaluations(row, place)):
        asked: dict[str, Any] = {**QUICK, "part": place.part, "device": place.device, **how}
        if how["protocol"] == IDENTIFICATION:
            del asked["metrics"]  # it has its own
        task, out = asked.pop("task"), evaluation_folder(folder, number, how, place)
        made = clocs.evaluate(run, data(task), out=out, progress=False, **asked)
        score = next(one for one in made.record.scores if one.level == "record" and one.init != "random")
        shown.append(f"{task} {score.value:.4f}")
    stages = ", ".join(f"{name} {seconds:.0f}" for name, seconds in run.record.seconds.items())
    print(f"{', '.join(shown)}; {trained - began:.0f} + {time.monotonic() - trained:.0f} s ({stages})")


def _machine() -> dict[str, object]:
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "machine": gpu or describe_machine(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("torch", "clocs")}},
    }


def _as_text(table: dict[str, Any]) -> str:
    lines = []
    for row in table["rows"]:
        lines.append(f"{row['name']} ({len(row['pretrain_seconds'])} seeds)")
        for one in row["scores"]:
            asked, value = f"{one['protocol']} {one['task']}, F = {one['label_fraction']:g}", score_of(one)[0]
            lines.append(f"    {asked}: {value:.4f} ({one['gain'][0]:+.4f} over random)")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
