"""Print the AUROC of a finished run or evaluation twice: of probabilities, as clocs reports it, and of logits.

    python benchmarks/auroc_of_logits.py runs/first
    python benchmarks/auroc_of_logits.py runs/grids/mine/evaluated/*/*/ --csv logits.csv
    python benchmarks/auroc_of_logits.py --grid runs/paper --export benchmarks/results/paper/first

One class against the rest, mean over classes, of frames. A softmax divides each row by its own sum, so that the rows of
one class are ordered otherwise than by their logits. A fine-tuned classifier keeps that sum beside its probabilities. A
linear model needs none: by the penalty on its weights, its logits have a mean of 0 over classes.

--export adds them to an export of the grid as beside.csv: the pages that `clocs grid page` makes of it then have a
column of them, beside the paper.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.artifacts.predictions import Predictions, read_predictions
from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.contracts.result_offers import LINEAR_MODELS
from clocs_core.contracts.scores import PRIOR, Score
from clocs_core.errors import ClocsError, RunFolderError
from clocs_core.files import write_atomically
from clocs_core.grids.export import Row, as_csv, rows_of
from clocs_core.grids.notes import read_notes
from clocs_core.grids.untrained import say_encoder
from clocs_plugins.classification.metrics import macro_auroc

MEASURE = "auroc of logits"
COLUMNS = ("run", "evaluation", "protocol", "init", "label_fraction", "probabilities", "logits")


def logits_of(rows: Predictions, protocol: str) -> NDArray[np.float64]:
    """Return the logits (n, class) of a classifier. Raise RunFolderError where they were not kept."""
    logs = np.log(np.maximum(rows.probability, np.finfo(np.float64).tiny))
    if rows.log_sum is not None:
        shifted: NDArray[np.float64] = logs + rows.log_sum[:, None]
        return shifted
    if protocol not in (*LINEAR_MODELS, PRIOR):
        raise RunFolderError(f"the logits of {protocol!r} were not kept: evaluate again with this version")
    centred: NDArray[np.float64] = logs - logs.mean(axis=1, keepdims=True)
    return centred


def both_areas(folder: Path) -> Iterator[tuple[str, str, float, float, float]]:
    """Compute both for every classifier of a folder, with its protocol, weights and F.

    There are none where classes occur together, since they have no softmax.
    """
    for (protocol, init, share), rows in read_predictions(RunFolder(folder).predictions).items():
        if rows.label.ndim > 1:
            print(f"{folder}: classes that occur together have no softmax; the two are equal.", file=sys.stderr)
            break
        once = np.ones(len(rows.label))
        try:
            logits = logits_of(rows, protocol)
        except RunFolderError as problem:
            raise RunFolderError(f"{folder}: {problem}.") from None
        yield (
            protocol,
            init,
            share,
            macro_auroc(rows.probability, rows.label, once),
            macro_auroc(logits, rows.label, once),
        )


def grid_rows(grid: Path) -> list[Row]:
    """List the AUROC of logits of every evaluation of a grid, as lines of an export."""
    found: set[Row] = set()
    for folder, note in read_notes(grid):
        if note.cells and (folder / "report.json").exists():
            scores = [
                Score(
                    protocol, init, note.cells[0].downstream, share, MEASURE, "frame", of_logits, of_logits, of_logits
                )
                for protocol, init, share, _, of_logits in both_areas(folder)
            ]
            found |= set(rows_of(note, scores, {}, say_encoder(EvaluationFolder(folder).read_report())))
    return sorted(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each classifier, or add them to an export. Returns 0, or 2 for a mistake."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="*", type=Path, help="folders of runs or evaluations")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the rows to a file instead")
    parser.add_argument("--grid", type=Path, metavar="FOLDER", help="the folder of a grid")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="an export of that grid, which gets beside.csv")
    given = parser.parse_args(arguments)
    try:
        if given.grid and given.export:
            rows = grid_rows(given.grid)
            write_atomically(given.export / "beside.csv", as_csv(rows).encode())
            print(f"{len(rows):,} scores: {given.export / 'beside.csv'}")
            return 0
        if given.grid or given.export or not given.folder:
            raise RunFolderError("Name folders of runs or evaluations, or give --grid and --export.")
        found = [(folder, row) for folder in given.folder for row in both_areas(folder)]
    except (ClocsError, OSError) as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 2
    if given.csv:
        lines = [
            (folder.parent.name, folder.name, protocol, init, f"{share:g}", f"{ours:.6f}", f"{theirs:.6f}")
            for folder, (protocol, init, share, ours, theirs) in found
        ]
        write_atomically(given.csv, as_csv(lines, COLUMNS).encode())
        return 0
    print("| folder | protocol | init | F | of probabilities | of logits |\n|---|---|---|---|---|---|")
    for folder, (protocol, init, share, ours, theirs) in found:
        print(f"| {folder} | {protocol} | {init} | {share:g} | {ours:.3f} | {theirs:.3f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
