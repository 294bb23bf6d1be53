"""Write the scores of a grid as tables: one line a score, and what pages need beside them.

Of every evaluation that is done, the scores of its own encoder; those of the untrained one are the lines of `random`,
once for each repetition. The name is that of the cell in the grid that was asked for last. No prediction of a
recording is in it.

A folder of an export has small files, from which pages are made without the folders of the runs:

scores.csv     one line a score
patients.csv   the spread over patients of every mean and of every paired difference, and of which repetitions they are;
               verdicts follow from both files
across.csv     the spread over patients of paired differences between places of a table, such as two label fractions
runs.csv       epochs of every pre-training, and how its encoders separate patients
calls.csv      the calls that ran jobs: command, time and machine
beside.csv     scores of the same cells by other measures, with the columns of scores.csv; others write it, if anybody
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import attrs

from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import RANDOM, Score
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.files import write_atomically
from clocs_core.grids.across import pairs_across
from clocs_core.grids.cells import ENCODER, GridCell, Pretraining
from clocs_core.grids.definition import Grid, is_grid, load_grid
from clocs_core.grids.invocations import Invocation, read_invocations
from clocs_core.grids.measure import Inputs, Measure
from clocs_core.grids.notes import Note, read_notes
from clocs_core.grids.results import Results
from clocs_core.grids.summary import Judged, Repetition, Seen, Summary, compare_across, seen_by, summarise
from clocs_core.grids.untrained import is_of, say_encoder, say_untrained
from clocs_core.report.visible import as_cell

SEEN = ("steps_to_best", "steps", "instances_to_best", "instances_seen")
COLUMNS = (
    *("method", "pretraining", "leads", "embedding_dim", "downstream", "protocol", "label_fraction", "options"),
    *("split", "seed", "part", "metric", "level", "score", "commit", "name", *SEEN, ENCODER),
)
PLACE = ("pretraining", "leads", "embedding_dim", "downstream", "protocol", "label_fraction", "options", "part")
PATIENTS = ("a", "b", *PLACE, "metric", "level", "repetitions", "sd", "overlap", "low", "high")
ACROSS = ("a", "b", *PLACE, "b_embedding_dim", "b_label_fraction", "metric", "level", "repetitions", "sd", "overlap")
RUNS = (
    *("method", "pretraining", "leads", "embedding_dim", "split", "seed", "init"),
    *("best_epoch", "epochs", "within", "between", "separation"),
)
CALLS = tuple(field.name for field in attrs.fields(Invocation))

Row = tuple[str, ...]


def score_rows(grids: Iterable[Path], measure: Measure | None = None) -> list[Row]:
    """List the scores in the folders of some grids together, each once, sorted; measure: those of one metric alone."""
    return sorted({row for path in grids for row in _rows(Results(path), measure, _names_in(path))})


def as_csv(rows: Iterable[Row], columns: Row = COLUMNS) -> str:
    """Write rows under their headings."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(map(as_cell, row) for row in [columns, *rows])
    return text.getvalue()


def write_export(grid: Grid, inputs: Inputs, folder: Path) -> int:
    """Write the files of an export for the tables of a grid, as far as they are done. Returns the number of scores.

    Raises SettingsError where nothing is done of what was asked for: the folder is that of another grid.
    """
    out = inputs.results.out
    scores = sorted(set(_rows(inputs.results, grid.measure, _names(grid))))
    tables = [summarise(preset.conditions, inputs) for preset in grid.presets if preset.needs_scores]
    runs = sorted(set(_run_rows(grid, inputs.results)))
    if not runs and not any(line.done for table in tables for line in table.lines):
        raise SettingsError(
            f"{out} has {len(scores):,} scores, and nothing is done of the tables that were asked for. Name the file "
            "of the grid that was run there: --asked FILE."
        )
    calls = [tuple(str(value) for value in attrs.astuple(one)) for one in read_invocations(out)]
    files = {
        "scores.csv": as_csv(scores),
        "patients.csv": as_csv(sorted({row for one in tables for row in _patient_rows(one, grid, scores)}), PATIENTS),
        "across.csv": as_csv(sorted(set(_across_rows(grid, inputs))), ACROSS),
        "runs.csv": as_csv(runs, RUNS),
        "calls.csv": as_csv(calls, CALLS),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_atomically(folder / name, text.encode())
    return len(scores)


def across_key(a: GridCell, b: GridCell, untrained: bool, made: Iterable[Repetition]) -> Row:
    """Return what names a paired difference in across.csv. untrained: whether b is the cell's untrained encoder."""
    name = RANDOM if untrained else say_method(b.pretraining)
    elsewhere = str(b.pretraining.embedding_dim), f"{b.label_fraction:g}"
    return (say_method(a.pretraining), name, *place_of(a), *elsewhere, say_repetitions(made))


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


def score_key(cell: GridCell, random: bool = False) -> tuple[Row, Repetition]:
    """Return what names a score in scores.csv: the method with the values of `PLACE`, and the repetition."""
    place = place_of(cell)
    if random or not cell.pretraining.trains:
        return (RANDOM, "", *place[1:]), repetition_of(cell)
    return (say_method(cell.pretraining), *place), repetition_of(cell)


def repetition_of(cell: GridCell) -> Repetition:
    """Return the split and the seed of a cell."""
    return cell.pretraining.split_seed, cell.pretraining.seed


def say_repetitions(made: Iterable[Repetition]) -> str:
    """Write repetitions as split/seed, with spaces between."""
    return " ".join(f"{split}/{seed}" for split, seed in sorted(made))


def _rows(results: Results, measure: Measure | None, names: Mapping[GridCell, str]) -> Iterator[Row]:
    for folder, note in read_notes(results.out):
        found = results.evaluation(folder, note.cells[0]) if note.cells else None
        if found is None or not RunFolder(folder).report.exists():
            continue
        if found.report is None:
            raise RunFolderError(found.note.error)
        scores = found.report.scores
        asked = [one for one in scores if measure is None or (one.metric, one.level) == measure.of]
        encoder = say_encoder(found.report)
        yield from rows_of(note, asked, names, encoder, seen_by(results.trained(note.run)))


def _names_in(out: Path) -> dict[GridCell, str]:
    """Return the names of the grid that was asked for last in a folder."""
    return _names(load_grid(out)) if is_grid(out) else {}


def _names(grid: Grid) -> dict[GridCell, str]:
    """Return the name of the row of each cell."""
    conditions = [one for preset in grid.presets if preset.needs_scores for one in preset.conditions]
    return {cell: one.row for one in conditions for cell in grid.repeats.cells(one)}


def rows_of(
    note: Note, scores: Iterable[Score], names: Mapping[GridCell, str], encoder: str, seen: Seen | None = None
) -> Iterator[Row]:
    """List scores of one evaluation as lines of scores.csv. names: of the rows of tables, by cell."""
    run, cell = note.run, note.cells[0]
    for score in scores:
        if score.protocol != cell.protocol:
            continue  # the class prior
        untrained = score.init == RANDOM
        # An untrained encoder depends on no pre-training set, and on its options only as far as `encoder` says.
        about = (RANDOM, "") if untrained else (say_method(run), run.dataset)
        numbers = ("",) * len(SEEN) if untrained or seen is None else [f"{one:.0f}" for one in attrs.astuple(seen)]
        yield (
            *(*about, run.leads, str(run.embedding_dim), cell.downstream, cell.protocol),
            *(f"{score.label_fraction:g}", " ".join(cell.options)),
            *(str(run.split_seed), str(run.seed), cell.part, score.metric, score.level),
            *(f"{score.value:.6f}", "" if untrained else note.commit),
            RANDOM if untrained else names.get(attrs.evolve(cell, label_fraction=score.label_fraction), ""),
            *numbers,
            encoder,
        )


def _patient_rows(table: Summary, grid: Grid, scores: Iterable[Row]) -> Iterator[Row]:
    """List the spreads over patients: of each mean, of each gain over the untrained encoder, of each difference."""
    scored = {_scored(row) for row in scores}
    by_row: dict[tuple[Condition, str], tuple[str, GridCell, tuple[Repetition, ...]]] = {}
    for line in table.lines:
        cells = grid.repeats.cells(line.condition)
        random = not line.condition.trains
        name = say_untrained(line.encoder) if random else say_method(cells[0].pretraining)
        made = tuple(repetition_of(cell) for cell in cells if _key(name, cell, random) in scored)
        by_row[line.condition.context, line.condition.row] = name, cells[0], made
        if random and is_of(line.encoder, grid.repeats.encoder):  # the row of the method `random`
            by_row[line.condition.context, RANDOM] = name, cells[0], made
        yield from _patient_row(name, "", cells[0], line.interval, made, grid.measure)
        yield from _patient_row(name, RANDOM, cells[0], line.gain, made, grid.measure)
    for one in table.differences:
        (a, cell, ours), (b, _, theirs) = (by_row[one.context, side] for side in (one.a, one.b))
        both = tuple(at for at in ours if at in theirs)
        if len(both) == one.repetitions:  # else some are of other patients
            yield from _patient_row(a, b, cell, one.interval, both, grid.measure)


def _across_rows(grid: Grid, inputs: Inputs) -> Iterator[Row]:
    """List the spreads over patients of differences between places; of one repetition, there is no interval to make."""
    pairs = [pair for preset in grid.presets if preset.needs_scores for pair in pairs_across(preset)]
    for pair, found, made in compare_across(pairs, inputs):
        if len(made) > 1:
            a, b = (grid.repeats.cells(one)[0] for one in (pair.a, pair.b))
            *about, repetitions = across_key(a, b, pair.untrained, made)
            yield (*about, *grid.measure.of, repetitions, f"{found.sd:.7g}", f"{found.overlap:.7g}")


def _patient_row(
    a: str, b: str, cell: GridCell, found: Judged | None, made: tuple[Repetition, ...], measure: Measure
) -> Iterator[Row]:
    if found is not None:
        numbers = [f"{one:.7g}" for one in (found.sd, found.overlap)]
        ends = (f"{found.low:.6f}", f"{found.high:.6f}") if len(made) == 1 else ("", "")  # else they follow
        yield (a, b, *place_of(cell), *measure.of, say_repetitions(made), *numbers, *ends)


def _key(name: str, cell: GridCell, random: bool) -> tuple[Row, Repetition]:
    (_, *place), repetition = score_key(cell, random)
    return (name, *place), repetition


def _scored(row: Row) -> tuple[Row, Repetition]:
    about = dict(zip(COLUMNS, row, strict=True))
    name = say_untrained(about[ENCODER]) if about["method"] == RANDOM else about["method"]
    return (name, *(about[one] for one in PLACE)), (int(about["split"]), int(about["seed"]))


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
