"""Write the scores of a grid as tables: one line a score, and what pages need beside them.

Of every evaluation that is done, the scores of its own encoder; those of the untrained one are the lines of `random`,
once for each repetition. The name is that of the cell in the grid that was asked for last. No prediction of a
recording is in it.

A folder of an export has small files, from which pages are made without the folders of the runs:

scores.csv     one line a score
patients.csv   the spread over patients of every mean and of every paired difference; verdicts follow from both files
runs.csv       epochs of every pre-training, and how its encoders separate patients
calls.csv      the calls that ran jobs: command, time and machine
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import Score
from clocs_core.files import write_atomically
from clocs_core.grids.cells import GridCell, Pretraining
from clocs_core.grids.definition import Grid, is_grid, load_grid
from clocs_core.grids.invocations import Invocation, read_invocations
from clocs_core.grids.measure import Inputs, Measure
from clocs_core.grids.notes import Note, read_notes
from clocs_core.grids.results import Results
from clocs_core.grids.summary import Judged, Seen, Summary, seen_by, summarise
from clocs_core.report.visible import as_cell

SEEN = ("steps_to_best", "steps", "instances_to_best", "instances_seen")
COLUMNS = (
    *("method", "pretraining", "leads", "embedding_dim", "downstream", "protocol", "label_fraction", "options"),
    *("split", "seed", "part", "metric", "level", "score", "commit", "name", *SEEN),
)
PLACE = ("pretraining", "leads", "embedding_dim", "downstream", "protocol", "label_fraction", "options", "part")
PATIENTS = ("a", "b", *PLACE, "metric", "level", "repetitions", "sd", "overlap", "low", "high")
RUNS = (
    *("method", "pretraining", "leads", "embedding_dim", "split", "seed", "init"),
    *("best_epoch", "epochs", "within", "between", "separation"),
)
CALLS = tuple(field.name for field in attrs.fields(Invocation))

Row = tuple[str, ...]


def score_rows(grids: Iterable[Path], measure: Measure | None = None) -> list[Row]:
    """List the scores in the folders of some grids together, each once, sorted; measure: those of one metric alone."""
    return sorted({row for path in grids for row in _rows(path, measure)})


def as_csv(rows: Iterable[Row], columns: Row = COLUMNS) -> str:
    """Write rows under their headings."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(map(as_cell, row) for row in [columns, *rows])
    return text.getvalue()


def write_export(grid: Grid, inputs: Inputs, folder: Path) -> int:
    """Write the files of an export for the tables of a grid, as far as they are done. Returns the number of scores."""
    out = inputs.results.out
    scores = score_rows([out], grid.measure)
    tables = [summarise(preset.conditions, inputs) for preset in grid.presets if preset.needs_scores]
    calls = [tuple(str(value) for value in attrs.astuple(one)) for one in read_invocations(out)]
    files = {
        "scores.csv": as_csv(scores),
        "patients.csv": as_csv(sorted({row for one in tables for row in _patient_rows(one, grid)}), PATIENTS),
        "runs.csv": as_csv(sorted(set(_run_rows(grid, inputs.results))), RUNS),
        "calls.csv": as_csv(calls, CALLS),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_atomically(folder / name, text.encode())
    return len(scores)


def say_method(run: Pretraining) -> str:
    """Name what is pre-trained, with all its options."""
    return " ".join([run.method, *run.options])


def place_of(cell: GridCell) -> Row:
    """Say where a cell stands, as files do: the values of `PLACE`. An untrained encoder has no pre-training set."""
    run = cell.pretraining
    return (
        *(run.dataset, run.leads, str(run.embedding_dim), cell.downstream, cell.protocol),
        *(f"{cell.label_fraction:g}", " ".join(cell.options), cell.part),
    )


def _rows(grid: Path, measure: Measure | None) -> Iterator[Row]:
    names, results = _names(grid), Results(grid)
    for folder, note in read_notes(grid):
        evaluation = EvaluationFolder(folder)
        if note.cells and evaluation.report.exists():
            scores = evaluation.read_report().scores
            asked = [one for one in scores if measure is None or (one.metric, one.level) == measure.of]
            yield from _rows_of(note, asked, names, seen_by(results.trained(note.run)))


def _names(out: Path) -> dict[GridCell, str]:
    if not is_grid(out):
        return {}
    grid = load_grid(out)
    conditions = [one for preset in grid.presets if preset.needs_scores for one in preset.conditions]
    return {cell: one.row for one in conditions for cell in grid.repeats.cells(one)}


def _rows_of(note: Note, scores: Iterable[Score], names: dict[GridCell, str], seen: Seen | None) -> Iterator[Row]:
    run, cell = note.run, note.cells[0]
    for score in scores:
        if score.protocol != cell.protocol:
            continue  # the class prior
        untrained = score.init == "random"
        # An untrained encoder depends on no pre-training set and on none of its options.
        about = ("random", "") if untrained else (say_method(run), run.dataset)
        numbers = ("",) * len(SEEN) if untrained or seen is None else [f"{one:.0f}" for one in attrs.astuple(seen)]
        yield (
            *(*about, run.leads, str(run.embedding_dim), cell.downstream, cell.protocol),
            *(f"{score.label_fraction:g}", " ".join(cell.options)),
            *(str(run.split_seed), str(run.seed), cell.part, score.metric, score.level),
            *(f"{score.value:.6f}", "" if untrained else note.commit),
            "random" if untrained else names.get(attrs.evolve(cell, label_fraction=score.label_fraction), ""),
            *numbers,
        )


def _patient_rows(table: Summary, grid: Grid) -> Iterator[Row]:
    """List the spreads over patients: of each mean, of each gain over the untrained encoder, of each difference."""
    by_row: dict[tuple[Condition, str], tuple[str, GridCell]] = {}
    for line in table.lines:
        cell = grid.repeats.cells(line.condition)[0]
        name = say_method(cell.pretraining)
        by_row[line.condition.context, line.condition.row] = name, cell
        yield from _patient_row(name, "", cell, line.interval, line.done, grid.measure)
        yield from _patient_row(name, "random", cell, line.gain, line.done, grid.measure)
    for one in table.differences:
        (a, cell), (b, _) = (by_row[one.context, side] for side in (one.a, one.b))
        yield from _patient_row(a, b, cell, one.interval, one.repetitions, grid.measure)


def _patient_row(
    a: str, b: str, cell: GridCell, found: Judged | None, repetitions: int, measure: Measure
) -> Iterator[Row]:
    if found is not None:
        numbers = [f"{one:.7g}" for one in (found.sd, found.overlap)]
        ends = (f"{found.low:.6f}", f"{found.high:.6f}") if repetitions == 1 else ("", "")  # else they follow
        yield (a, b, *place_of(cell), *measure.of, str(repetitions), *numbers, *ends)


def _run_rows(grid: Grid, results: Results) -> Iterator[Row]:
    for one in (one for preset in grid.presets for one in preset.conditions if one.trains):
        for run in grid.repeats.runs(one):
            report = results.trained(run)
            for found in report.patients if report else ():
                assert report is not None
                yield (
                    *(say_method(run), run.dataset, run.leads, str(run.embedding_dim)),
                    *(str(run.split_seed), str(run.seed), found.init, str(report.best_epoch), str(report.epochs_run)),
                    *(f"{value:.6g}" for value in (found.intra_mean, found.inter_mean, found.separation)),
                )
