"""List every score of the linear evaluation of some runs, by our solver and by scikit-learn's on the same features.

    python benchmarks/linear_differences_grid.py runs/ptbxl/pretrained/* --root $CLOCS_DATA/ptbxl --jobs 2 \\
        --out benchmarks/results/linear_differences_grid.csv

A run is a folder of `clocs run`, or its encoder.safetensors. Its encoder and the untrained one are evaluated on the
recordings that it was trained on, as a grid evaluates them. scikit-learn's solver is asked twice: with its default
tolerance, with which it was used before and stops early, and to convergence.
"""

from __future__ import annotations

import argparse
import csv
import io
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs
import torch
from linear_differences import SOLVERS, Problem, compare, remembering

from clocs_core.artifacts.card import encoder_card
from clocs_core.artifacts.encoder import find_encoder
from clocs_core.artifacts.predictions import Classifier
from clocs_core.artifacts.tensors import read_tensors
from clocs_core.cli import main as clocs
from clocs_core.evaluation.classifiers import ClassifierMaker
from clocs_core.files import write_atomically

KEYS = ("run", "method", "leads", "seed", "label_fraction")
BESIDE = {"default": "default", "converged": "converged, by Newton's method"}
COLUMNS = (*KEYS, "level", "metric", "score", *(word for name in BESIDE for word in (name, f"from_{name}")))

Row = dict[str, Any]
_MAKE = ClassifierMaker.make


def main() -> int:
    """Evaluate the runs, compare the solvers, and write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs, or their encoders")
    parser.add_argument("--root", type=Path, help="folder of the data set; default: that of the runs")
    parser.add_argument("--label-fractions", default="0.25,0.5", help="label fractions F, with commas")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where recordings are embedded")
    parser.add_argument("--out", type=Path, required=True, help="the .csv file to write")
    given = parser.parse_args()
    fractions = tuple(given.label_fractions.split(","))
    with tempfile.TemporaryDirectory() as folder:
        one = partial(rows_of, how=How(Path(folder), given.root, given.device, fractions))
        with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:  # CUDA does not work in a fork
            first = pool.submit(one, given.runs[0]).result()  # prepares the recordings for all
            made = [first, *pool.map(one, given.runs[1:])]
    write_atomically(given.out, as_csv(list(chain.from_iterable(made))))
    return 0


@attrs.frozen
class How:
    """How runs are evaluated. scratch: a folder for prepared recordings and evaluations."""

    scratch: Path
    root: Path | None
    device: str
    fractions: tuple[str, ...]

    def words(self) -> list[str]:
        """Return the options of `clocs evaluate`."""
        words = ["--data-root", str(self.scratch / "data"), "--device", self.device]
        words += ["--label-fraction", ",".join(self.fractions)]
        words += ["--resamples", "2", "--permutations", "0", "--pictures", "false"]
        return words if self.root is None else [*words, "--root", str(self.root)]


def rows_of(run: Path, how: How) -> list[Row]:
    """Evaluate one run, and return the scores of its encoder and of the untrained one."""
    torch.set_num_threads(1)
    problems: list[Problem] = []
    made: list[Classifier] = []

    def make(maker: ClassifierMaker, key: Classifier, *more: Any) -> Any:
        made.append(key)
        return _MAKE(maker, key, *more)

    with (
        patch.object(ClassifierMaker, "make", make),
        remembering(problems),
        tempfile.TemporaryDirectory(dir=how.scratch) as out,
        redirect_stdout(io.StringIO()),  # a table whose intervals have two draws, and what is said of it
    ):
        if clocs(["evaluate", str(run), *how.words(), "--out", f"{out}/evaluation"]) != 0:
            raise SystemExit(f"{run} could not be evaluated")
    file = find_encoder(run)
    card = encoder_card(read_tensors(file)[1], file)
    keys = [key for key in made if key[0] == "linear"]  # not those of the class prior
    found = []
    for (_, init, fraction), problem in zip(keys, problems, strict=True):
        of = "" if init == "random" else file.parent.name  # runs of one seed share the untrained encoder
        place = (of, init, len(card.channels), card.settings["run"]["seed"], fraction)
        found += list(_scores(dict(zip(KEYS, place, strict=True)), problem))
    print(f"{run.name}: {len(found)} scores", flush=True)
    return found


def _scores(place: Row, problem: Problem) -> Iterator[Row]:
    scores = compare(problem, {name: SOLVERS[name] for name in BESIDE.values()})["scores"]
    for name, ours in scores["ours"].items():
        metric, level = name.removesuffix("s").split(" of ")
        row = {**place, "level": level, "metric": metric, "score": f"{ours:.6f}"}
        for column, solver in BESIDE.items():
            theirs = scores[solver][name]
            row |= {column: f"{theirs:.6f}", f"from_{column}": f"{ours - theirs:+.6f}"}
        yield row


def as_csv(rows: list[Row]) -> str:
    """Write rows as a table, each once."""
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        dict(row) for row in sorted({tuple(row.items()) for row in rows}, key=lambda row: [str(v) for _, v in row])
    )
    return table.getvalue()


if __name__ == "__main__":
    raise SystemExit(main())
