"""Print the AUROC of a finished run or evaluation twice: of probabilities, as clocs reports it, and of logits.

    python benchmarks/auroc_of_logits.py runs/first
    python benchmarks/auroc_of_logits.py runs/paper/evaluated/*/*/ --csv logits.csv

One class against the rest, mean over classes, of frames. A softmax divides each row by its own sum, so that the rows of
one class are ordered otherwise than by their logits. Logits are taken back from the stored probabilities, less their
mean over classes, which no probability depends on. A linear model with a penalty on its weights has a mean of 0.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.predictions import read_predictions
from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.errors import ClocsError
from clocs_plugins.classification.metrics import macro_auroc

Row = tuple[str, str, str, float, float]
"""Protocol, weights and F of a classifier, and its AUROC of probabilities and of logits."""


def logits_of(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logits (n, class) of softmax probabilities, less their mean over classes."""
    logs = np.log(np.maximum(probability, np.finfo(np.float64).tiny))
    centred: NDArray[np.float64] = logs - logs.mean(axis=1, keepdims=True)
    return centred


def both_areas(folder: Path) -> Iterator[Row]:
    """Compute both for every classifier of a folder; none where classes occur together, since they have no softmax."""
    for (protocol, init, share), rows in read_predictions(RunFolder(folder).predictions).items():
        if rows.label.ndim > 1:
            print(f"{folder}: classes that occur together have no softmax; the two are equal.", file=sys.stderr)
            break
        once = np.ones(len(rows.label))
        both = [macro_auroc(one, rows.label, once) for one in (rows.probability, logits_of(rows.probability))]
        yield protocol, init, f"{share:g}", both[0], both[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write a row for each classifier. Returns 0, or 2 for a mistake."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", type=Path, help="folders of runs or evaluations")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the rows to a file instead")
    given = parser.parse_args(arguments)
    try:
        found = [(folder, row) for folder in given.folder for row in both_areas(folder)]
    except (ClocsError, OSError) as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 2
    if given.csv:
        with given.csv.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(("run", "evaluation", "protocol", "init", "label_fraction", "probabilities", "logits"))
            for folder, (*about, ours, theirs) in found:
                writer.writerow((folder.parent.name, folder.name, *about, f"{ours:.6f}", f"{theirs:.6f}"))
        return 0
    print("| folder | protocol | init | F | of probabilities | of logits |\n|---|---|---|---|---|---|")
    for folder, (*about, ours, theirs) in found:
        print(f"| {folder} | {' | '.join(map(str, about))} | {ours:.3f} | {theirs:.3f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
