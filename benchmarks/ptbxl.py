"""Pre-train and evaluate on PTB-XL as its benchmark does: folds 1-8 / 9 / 10, six tasks, one vector per recording.

    python benchmarks/ptbxl.py --root $CLOCS_DATA/ptbxl --out runs/ptbxl --json benchmarks/results/ptbxl/all.json
    python benchmarks/ptbxl.py --root $CLOCS_DATA/ptbxl --out runs/ptbxl --part validation --rows mine.toml

The rows of the table are in benchmarks/ptbxl.toml: a method with an encoder and settings, and its seeds. Each is
pre-trained on folds 1-8 once for each seed, without labels; then the frozen encoder is evaluated by a linear model on
one vector per recording (`linear-record`, C chosen on fold 9), task by task, beside the same encoder untrained.
`--part validation` scores fold 9 instead, with C = 0.01, to choose settings without looking at fold 10. Both can share
`--out`: a run that is chosen is not trained again. A row can ask for more evaluations. What is finished is not done
again.

The figures are macro AUROC of recordings, with the mean over seeds and its interval over seeds and patients.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
import torch
from command_line import command_line

import clocs_core as clocs
from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.artifacts.predictions import read_predictions
from clocs_core.evaluation.bootstrap import Interval, bootstrap
from clocs_core.evaluation.linear import by_record
from clocs_core.evaluation.over_seeds import difference_over_seeds, mean_over_seeds
from clocs_core.grids.machine import describe_machine
from clocs_plugins.classification import clocs_metrics

TASKS = ("all", "diagnostic", "subclass", "superclass", "form", "rhythm")
HERE = Path(__file__).parent
COMMON: dict[str, object] = {"autocast": "bf16", "batch_size": 256}
"""Settings of every pre-training, unless a row has others."""
FRAMES: dict[str, dict[str, object]] = {
    "whole": {"frame_samples": 1000, "frames_per_record": 1},
    "halves": {"frame_samples": 500, "frames_per_record": 2},
    "quarters": {"frame_samples": 250, "frames_per_record": 4},
}
"""Frames of a recording of 10 s at 100 Hz."""
RESAMPLES = 1000
"""Bootstrap samples of the patients, the same for all rows."""
QUICK: dict[str, object] = {"permutations": 0, "metrics": "auroc", "pictures": False}


@attrs.frozen
class Row:
    """A row of the table. evaluations: settings of each evaluation, of the linear one on six tasks by default."""

    name: str
    method: str
    encoder: str
    frames: str = "whole"
    task: str = "superclass"
    seeds: int = 1
    options: dict[str, Any] = attrs.field(factory=dict)
    evaluations: tuple[dict[str, Any], ...] = ()
    linear: bool = True


@attrs.frozen
class Place:
    """Where recordings, runs and results lie, and which fold is scored."""

    root: Path
    out: Path
    part: str
    device: str
    tasks: tuple[str, ...] = TASKS

    def folder(self, row: Row, seed: int) -> Path:
        """Return the run folder of a row's seed."""
        return self.out / row.name.replace(" ", "-").replace(",", "") / f"seed{seed}"


def read_rows(path: Path) -> list[Row]:
    """Read the rows of the table."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Row(**{**one, "evaluations": tuple(one.get("evaluations", ()))}) for one in found["rows"]]


def main() -> int:
    """Make the runs that are missing, score them, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder of PTB-XL")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--part", choices=("validation", "test"), default="test", help="score fold 9, or fold 10")
    parser.add_argument("--rows", type=Path, default=HERE / "ptbxl.toml", help="file with the rows")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="rows to make; default: all")
    parser.add_argument("--without", nargs="*", default=[], metavar="NAME", help="rows to leave out")
    parser.add_argument("--tasks", nargs="*", default=TASKS, metavar="TASK", help="tasks to evaluate; default: all six")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the GPU")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--until", type=float, default=float("inf"), help="start no run after so many seconds")
    parser.add_argument("--json", type=Path, help="write the table here")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "SEED"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    place = Place(given.root, given.out, given.part, given.device, tuple(given.tasks))
    rows = [row for row in read_rows(given.rows) if not given.only or row.name in given.only]
    rows = [row for row in rows if row.name not in given.without]
    if given.one:
        name, seed = given.one
        make(next(row for row in rows if row.name == name), int(seed), place)
        return 0
    failed = _make_all(rows, place, given.jobs, given.until)
    table = {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "part": given.part,
        **_machine(),
        "failed": failed,
        "rows": [found for row in rows if (found := summarise(row, place))],
    }
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


def is_finished(row: Row, seed: int, place: Place) -> bool:
    """Return whether a run and all of its evaluations have a report."""
    folder = place.folder(row, seed)
    evaluated = (_evaluation_folder(folder, number, how, place) for number, how in enumerate(_evaluations(row, place)))
    return all((one / "report.json").exists() for one in (folder, *evaluated))


def _evaluation_folder(run: Path, number: int, how: dict[str, Any], place: Place) -> Path:
    return run / "table" / f"{number}-{how['protocol']}-{how['task']}-{place.part}"


def make(row: Row, seed: int, place: Place) -> None:
    """Pre-train a row with a seed and evaluate it; finished parts are opened only."""
    folder = place.folder(row, seed)

    def data(task: str) -> Any:
        return clocs.dataset("ptbxl", root=place.root, task=task, split="published")

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
    for number, how in enumerate(_evaluations(row, place)):
        asked: dict[str, Any] = {**QUICK, "part": place.part, "device": place.device, **how}
        task, out = asked.pop("task"), _evaluation_folder(folder, number, how, place)
        made = clocs.evaluate(run, data(task), out=out, progress=False, **asked)
        score = next(one for one in made.record.scores if one.level == "record" and one.init != "random")
        shown.append(f"{task} {score.value:.4f}")
    stages = ", ".join(f"{name} {seconds:.0f}" for name, seconds in run.record.seconds.items())
    print(f"{', '.join(shown)}; {trained - began:.0f} + {time.monotonic() - trained:.0f} s ({stages})")


def _evaluations(row: Row, place: Place) -> Iterable[dict[str, Any]]:
    c: dict[str, object] = {"C": 0.01} if place.part == "validation" else {"C": "auto"}
    if row.linear:
        yield from ({"protocol": "linear-record", "task": task, **c} for task in place.tasks)
    yield from row.evaluations


def summarise(row: Row, place: Place) -> dict[str, Any] | None:
    """Collect the scores of a row over the seeds that are finished."""
    folders = [place.folder(row, seed) for seed in range(row.seeds)]
    folders = [one for one in folders if (one / "report.json").exists()]
    if not folders:
        return None
    runs = [clocs.load_run(one) for one in folders]
    found: dict[str, Any] = attrs.asdict(row, filter=lambda field, _: field.name not in ("evaluations", "linear"))
    found |= {
        "parameters": sum(weight.numel() for weight in runs[0].encoder.network.parameters()),
        "pretrain_seconds": [round(one.record.seconds["pretrain"], 1) for one in runs],
        "scores": [],
    }
    by_evaluation: dict[str, list[Path]] = defaultdict(list)
    for folder in folders:
        for one in sorted(folder.glob(f"table/*-{place.part}")):
            if (one / "report.json").exists():
                by_evaluation[one.name].append(one)
    asked = list(_evaluations(row, place))
    for name, several in by_evaluation.items():
        how = asked[int(name.partition("-")[0])]
        found["scores"] += _scores([EvaluationFolder(one) for one in several], how)
    return found


def _scores(folders: list[EvaluationFolder], how: dict[str, Any]) -> list[dict[str, Any]]:
    """Return mean and interval over seeds and patients of one evaluation at each F, and those over its control.

    how: the settings of the evaluation.
    """
    auroc = next(one for one in clocs_metrics() if one.name == "auroc")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    reports = [one.read_report() for one in folders]
    predicted = [read_predictions(one.predictions) for one in folders]
    first, made = reports[0], []
    for fraction in sorted({f for _, _, f in predicted[0]}):
        ours, theirs = (
            [bootstrap(by_record(p[first.protocol, init, fraction]), auroc, RESAMPLES, 0, device) for p in predicted]
            for init in (first.init, "random")
        )
        mean, control = mean_over_seeds(ours), mean_over_seeds(theirs)
        gain = difference_over_seeds(ours, theirs, paired=True)
        made.append(
            {
                "protocol": first.protocol,
                "task": first.task,
                "label_fraction": fraction,
                "chosen": how.get("C") == "auto",  # on fold 9
                "settings": {name: value for name, value in how.items() if name not in ("protocol", "task")},
                "C": [c.C for r in reports for c in r.cells if (c.init, c.label_fraction) == (first.init, fraction)],
                "seeds": [round(one.value, 5) for one in ours],
                **{name: _rounded(one) for name, one in (("auroc", mean), ("random", control), ("gain", gain))},
                "seconds": round(statistics.median(sum(r.seconds.values()) for r in reports), 1),
            }
        )
    return made


def _rounded(one: Interval) -> list[float]:
    return [round(float(x), 5) for x in (one.value, one.low, one.high)]


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
            asked = f"{one['protocol']} {one['task']}, F = {one['label_fraction']:g}"
            lines.append(f"    {asked}: {one['auroc'][0]:.4f} ({one['gain'][0]:+.4f} over random)")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
