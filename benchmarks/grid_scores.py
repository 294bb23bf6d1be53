"""Write the scores of a grid as a table of one line a score, small enough to keep with the source.

    python benchmarks/grid_scores.py runs/grid --out benchmarks/results/grid/scores.csv

Of every evaluation that is done, the scores of its own encoder; those of the untrained one are the lines of `random`,
once for each repetition. No prediction of a recording is in it.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from grid.notes import Note, read_notes

from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.contracts.scores import Score
from clocs_core.errors import ClocsError
from clocs_core.files import write_atomically
from clocs_core.report.visible import as_cell

COLUMNS = (
    *("method", "pretraining", "leads", "embedding_dim", "downstream", "protocol", "label_fraction", "options"),
    *("split", "seed", "part", "metric", "level", "score", "commit"),
)

Row = tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table of some grids together. Returns 0, or 2 for a mistake."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", nargs="+", type=Path, help="folders of grids")
    parser.add_argument("--out", type=Path, required=True, help="the .csv file to write")
    given = parser.parse_args(arguments)
    try:
        rows = sorted({row for path in given.grid for row in _rows(path)})
        write_atomically(given.out, as_csv(rows).encode())
    except ClocsError as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 2
    print(f"{len(rows):,} scores: {given.out}")
    return 0


def as_csv(rows: Iterable[Row]) -> str:
    """Write rows under their headings."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(map(as_cell, row) for row in [COLUMNS, *rows])
    return text.getvalue()


def _rows(grid: Path) -> Iterator[Row]:
    for folder, note in read_notes(grid):
        evaluation = EvaluationFolder(folder)
        if note.cells and evaluation.report.exists():
            yield from _rows_of(note, evaluation.read_report().scores)


def _rows_of(note: Note, scores: Iterable[Score]) -> Iterator[Row]:
    run, cell = note.run, note.cells[0]
    for score in scores:
        if score.protocol != cell.protocol:
            continue  # the class prior
        untrained = score.init == "random"
        # An untrained encoder depends on no pre-training set and on none of its options.
        about = ("random", "") if untrained else (" ".join([run.method, *run.options]), run.dataset)
        yield (
            *(*about, run.leads, str(run.embedding_dim), cell.downstream, cell.protocol),
            *(f"{score.label_fraction:g}", " ".join(cell.options)),
            *(str(run.split_seed), str(run.seed), cell.part, score.metric, score.level),
            *(f"{score.value:.6f}", note.commit),
        )


if __name__ == "__main__":
    raise SystemExit(main())
