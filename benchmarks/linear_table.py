"""The paper's linear evaluation as one table: methods beside the untrained encoder, several seeds, patient intervals.

    python benchmarks/linear_table.py --dataset ptbxl --root $CLOCS_DATA/ptbxl --seeds 3 --jobs 8 \
        --rows mt-ssl byol simclr cmlc cmsmlc cmsc --part validation
    (choose; then, once:)
    python benchmarks/linear_table.py … --part test --json benchmarks/results/ptbxl_linear.json

A row is a method, with options behind a colon: `byol:loss=cosine,layer4_relu=false`. Every cell is a `clocs run` in a
folder of its own under --out; what is finished is not repeated and what was interrupted goes on. Training knows
nothing of --part: the test part is scored by going on with a copy of the trained run, for the rows that are asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path

import attrs
import numpy as np
from grid.commit import source_commit

from clocs_core.artifacts.predictions import read_predictions
from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.evaluation.bootstrap import Interval, bootstrap, compare
from clocs_core.evaluation.pairing import mean_interval
from clocs_core.files import write_atomically
from clocs_core.settings.toml_file import dump_tables, read_tables

RESAMPLES = 1000


@attrs.frozen
class Cell:
    """One run: a method with options, and a seed."""

    row: str
    seed: int

    @property
    def method(self) -> str:
        return self.row.partition(":")[0]

    @property
    def options(self) -> list[str]:
        return [f"-o{one}" for one in self.row.partition(":")[2].split(",") if one]

    def folder(self, out: Path) -> Path:
        return out / f"{self.row.replace(':', '+').replace(',', '+')}-s{self.seed}"


def main() -> int:
    given = _arguments()
    out = Path(given.out)
    cells = [Cell(row, seed) for row in given.rows for seed in range(given.seeds)]
    began = time.monotonic()
    with ThreadPoolExecutor(given.jobs) as pool:
        finished = list(pool.map(lambda cell: _finish(cell, given, out), cells))
    failed = [cell for cell, done in zip(cells, finished, strict=True) if not done]
    for cell in failed:
        print(f"failed: {cell.row} seed {cell.seed}; see {cell.folder(out)}.log", file=sys.stderr)
    rows = [row for row in given.rows if not any(cell.row == row for cell in failed)]
    if not rows:
        return 1
    scored = out if given.part == "validation" else out / "test"
    table = summarise(rows, given.seeds, given.fraction, scored, trained=out)
    table |= {"part": given.part, "dataset": given.dataset, "seconds": round(time.monotonic() - began, 1)}
    table |= {
        "date": datetime.now(UTC).date().isoformat(),
        "command": _command(given),
        "revision": source_commit(Path(__file__).parent),
    }
    print(markdown(table))
    if given.json:
        write_atomically(Path(given.json), json.dumps(table, indent=2) + "\n")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=["mt-ssl", "byol", "simclr", "cmlc", "cmsmlc", "cmsc"])
    parser.add_argument("--dataset", default="ptbxl")
    parser.add_argument("--root", help="the data set's own folder")
    parser.add_argument("--leads", default="4")
    parser.add_argument("--fraction", type=float, default=0.5, help="F, the share of labelled training frames")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--part", choices=("validation", "test"), default="validation")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--out", default="runs/linear-table")
    parser.add_argument("--json", help="write the table here too")
    parser.add_argument("--also", nargs="*", default=[], help="more options for every run, as NAME=VALUE")
    return parser.parse_args()


def _command(given: argparse.Namespace) -> str:
    """What made the table, without the places of this machine."""
    root = f" --root $CLOCS_DATA/{given.dataset}" if given.root else ""
    also = f" --also {' '.join(given.also)}" if given.also else ""
    return (
        f"python benchmarks/linear_table.py --dataset {given.dataset}{root} --leads {given.leads} --fraction "
        f"{given.fraction:g} --seeds {given.seeds} --part {given.part} --device {given.device} --jobs {given.jobs}"
        f"{also} --rows {' '.join(given.rows)}"
    )


def _finish(cell: Cell, given: argparse.Namespace, out: Path) -> bool:
    """Train a cell if it is not trained, score it where it is to be scored. False where a run failed."""
    folder = RunFolder(cell.folder(out))
    if not folder.report.exists():
        fresh = ["--plugin", cell.method, "--dataset", given.dataset, "--leads", given.leads, "--out", str(folder.path)]
        fresh += ["--embedding-dim", "128", "--seed", str(cell.seed), "--device", given.device]
        fresh += [f"-olabel_fraction={given.fraction}", "-opart=validation", *cell.options]
        fresh += [f"-o{one}" for one in given.also] + (["--root", given.root] if given.root else [])
        if not _clocs(["--resume", str(folder.path)] if folder.settings.exists() else fresh, folder.path):
            return False
    if given.part == "validation":
        return True
    scored = RunFolder(cell.folder(out / "test"))
    if scored.report.exists():
        return True
    if not scored.settings.exists():
        _copy_trained(folder, scored)
    return _clocs(["--resume", str(scored.path)], scored.path)


def _copy_trained(folder: RunFolder, to: RunFolder) -> None:
    """A copy of a run as it stood when training had ended, to be scored on the test part."""
    tables = read_tables(folder.settings)
    tables["evaluate"]["part"] = "test"
    to.path.mkdir(parents=True, exist_ok=True)  # a kill may have left a copy without settings, which come last
    for source, target in ((folder.checkpoint, to.checkpoint), (folder.metrics, to.metrics)):
        shutil.copy(source, target)
    write_atomically(to.settings, dump_tables(tables))


def _clocs(arguments: list[str], log: Path) -> bool:
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "clocs_core", "run", *arguments, "--workers", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    with open(f"{log}.log", "a", encoding="utf-8") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment, check=False)
    return done.returncode == 0


def summarise(rows: list[str], seeds: int, fraction: float, out: Path, trained: Path) -> dict[str, object]:
    """Scores by row at the level of frames; each against its own untrained encoder, and against every other row.

    out: holds the runs that were scored. trained: holds those that trained, which a scored one may have gone on from.
    """
    found: dict[str, Interval] = {}
    table: dict[str, object] = {}
    for row in rows:
        folders = [RunFolder(Cell(row, seed).folder(out)) for seed in range(seeds)]
        reports = [json.loads(folder.report.read_text(encoding="utf-8")) for folder in folders]
        if not found:
            found["random"] = mean_interval([_score(folder, "random", fraction) for folder in folders])
            table["random"] = _entry(found["random"], [_value(one, "random") for one in reports])
            table["random"] |= {"separation": _separation(reports, "random")}  # type: ignore[operator]
        method = Cell(row, 0).method
        found[row] = mean_interval([_score(folder, method, fraction) for folder in folders])
        untrained = mean_interval(
            [_score(folder, "random", fraction) for folder in folders]
        )  # an option may have changed it
        gain = compare(found[row], untrained)
        table[row] = _entry(found[row], [_value(one, method) for one in reports]) | {
            "over_random": [round(x, 4) for x in (gain.value, gain.low, gain.high)],
            "epochs": [one["epochs_run"] for one in reports],
            "best_epochs": [one["best_epoch"] for one in reports],
            "seconds_of_training": [_seconds(Cell(row, seed).folder(trained)) for seed in range(seeds)],
            "separation": _separation(reports, method),
        }
    pairs = list(permutations(rows, 2))
    differences = {f"{a} - {b}": compare(found[a], found[b]) for a, b in pairs}
    shown = {name: [round(x, 4) for x in (one.value, one.low, one.high)] for name, one in differences.items()}
    return {
        "rows": table,
        "differences": shown,
        "label_fraction": fraction,
        "metric": "auroc, frame level",
        "split": reports[0]["split"],
        "environment": {k: v for k, v in reports[0]["environment"].items() if not k.startswith("plugin ")},
    }


def _seconds(folder: Path) -> float:
    """How long the training of a run took."""
    report = json.loads(RunFolder(folder).report.read_text(encoding="utf-8"))
    return round(float(report["seconds"]["pretrain"]), 1)


def _score(folder: RunFolder, init: str, fraction: float) -> Interval:
    from clocs_plugins.classification.metrics import macro_auroc

    return bootstrap(read_predictions(folder.predictions)["linear", init, fraction], macro_auroc, RESAMPLES, seed=0)


def _entry(score: Interval, values: list[float]) -> dict[str, object]:
    return {
        "mean": round(score.value, 4),
        "sd_over_seeds": round(float(np.std(values, ddof=1)), 4) if len(values) > 1 else None,
        "interval": [round(score.low, 4), round(score.high, 4)],
        "by_seed": [round(value, 4) for value in values],
    }


def _value(report: dict, init: str) -> float:  # type: ignore[type-arg]
    return next(
        float(one["value"])
        for one in report["scores"]
        if (one["init"], one["protocol"], one["level"]) == (init, "linear", "frame")
    )


def _separation(reports: list[dict], init: str) -> float:  # type: ignore[type-arg]
    return round(float(np.mean([p["separation"] for one in reports for p in one["patients"] if p["init"] == init])), 4)


def markdown(table: dict) -> str:  # type: ignore[type-arg]
    """The table for people."""
    lines = [
        f"AUROC on {table['part']} patients of {table['dataset']}, F = {table['label_fraction']:g}, frame level",
        "",
        "| encoder | mean ± sd over seeds | 95 % over patients | over random | epochs | separation of patients |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in table["rows"].items():
        low, high = row["interval"]
        sd = "" if row["sd_over_seeds"] is None else f" ± {row['sd_over_seeds']:.3f}"
        gain = "" if "over_random" not in row else "{:+.3f} [{:.3f}, {:.3f}]".format(*row["over_random"])
        epochs = ", ".join(map(str, row.get("epochs", [])))
        lines.append(
            f"| {name} | {row['mean']:.3f}{sd} | {low:.3f} – {high:.3f} | {gain} | {epochs} | {row['separation']:.3f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
