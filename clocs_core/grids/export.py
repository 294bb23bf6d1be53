"""Write the scores of a grid as a table of one line a score.

Of every evaluation that is done, the scores of its own encoder; those of the untrained one are the lines of `random`,
once for each repetition. The name is that of the cell in the grid that was asked for last. No prediction of a
recording is in it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.contracts.scores import Score
from clocs_core.grids.cells import GridCell
from clocs_core.grids.definition import is_grid, load_grid
from clocs_core.grids.notes import Note, read_notes
from clocs_core.report.visible import as_cell

COLUMNS = (
    *("method", "pretraining", "leads", "embedding_dim", "downstream", "protocol", "label_fraction", "options"),
    *("split", "seed", "part", "metric", "level", "score", "commit", "name"),
)

Row = tuple[str, ...]


def score_rows(grids: Iterable[Path]) -> list[Row]:
    """List the scores in the folders of some grids together, each once, sorted."""
    return sorted({row for path in grids for row in _rows(path)})


def as_csv(rows: Iterable[Row]) -> str:
    """Write rows under their headings."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(map(as_cell, row) for row in [COLUMNS, *rows])
    return text.getvalue()


def _rows(grid: Path) -> Iterator[Row]:
    names = _names(grid)
    for folder, note in read_notes(grid):
        evaluation = EvaluationFolder(folder)
        if note.cells and evaluation.report.exists():
            yield from _rows_of(note, evaluation.read_report().scores, names)


def _names(out: Path) -> dict[GridCell, str]:
    if not is_grid(out):
        return {}
    grid = load_grid(out)
    conditions = [one for preset in grid.presets if preset.needs_scores for one in preset.conditions]
    return {cell: one.row for one in conditions for cell in grid.repeats.cells(one)}


def _rows_of(note: Note, scores: Iterable[Score], names: dict[GridCell, str]) -> Iterator[Row]:
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
            "random" if untrained else names.get(attrs.evolve(cell, label_fraction=score.label_fraction), ""),
        )
