"""The files of an export give the tables that the folders gave, and nothing else is needed for them."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import attrs
import numpy as np
import pytest
from edited_files import edit_json
from grid_folders import write_evaluation, write_run
from page_oracle import check_page

from clocs_core.artifacts.reports import PatientSeparation
from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.evaluation.over_seeds import interval_from_spreads
from clocs_core.grids.axes import Repeats
from clocs_core.grids.definition import Grid
from clocs_core.grids.distances import distance_sheet, summarise_distances
from clocs_core.grids.draws import source_of
from clocs_core.grids.export import write_export
from clocs_core.grids.exported_files import read_kept
from clocs_core.grids.exported_pages import write_kept_pages
from clocs_core.grids.exported_tables import KeptLines
from clocs_core.grids.measure import Inputs, Measure
from clocs_core.grids.presets import Preset
from clocs_core.grids.results import Results
from clocs_core.grids.rows import difference_sheet, score_sheet
from clocs_core.grids.summary import Summary, summarise, tabulate
from clocs_plugins.paper_tables.published import find_printed

PLACE = Condition(method="cmsc", pretraining="chapman", downstream="chapman", protocol="linear")
MEASURE = Measure(resamples=20)


def make_grid(
    out: Path,
    repeats: Repeats,
    exposures: tuple[str, ...] = ("",),
    options: tuple[tuple[str, ...], ...] = ((),),
    methods: tuple[str, ...] = ("cmsc", "simclr"),
) -> Grid:
    """Two methods with reports and draws; scores have six digits, as the file. options: each method has one of each."""
    conditions = tuple(
        attrs.evolve(PLACE, method=method, exposure=exposure, options=given)
        for exposure in exposures
        for given in options
        for method in methods
    )
    rng = np.random.default_rng(0)
    for one in conditions:
        for cell in repeats.cells(one):
            run = cell.pretraining
            untrained = np.random.default_rng(
                [run.split_seed, run.seed, options.index(one.options), run.untrained == "resnet1d"]
            )
            values = {one.method: round(rng.uniform(0.6, 0.9), 6), "random": round(untrained.uniform(0.4, 0.6), 6)}
            about = (cell.downstream, cell.label_fraction, "auroc", "frame")
            scores = [Score(cell.protocol, init, *about, value, 0, 1) for init, value in values.items()]  # type: ignore[arg-type]
            folder = write_evaluation(out, [cell], scores, commit="abc")
            for init, value in values.items():
                kept = source_of(cell, init, folder / "predictions.npz", MEASURE, out).kept
                kept.parent.mkdir(parents=True, exist_ok=True)
                own = untrained if init == "random" else rng  # the untrained encoder is the same for all
                draws = np.random.default_rng(len(init)).normal(value, 0.02, 20) + own.normal(0, 0.01, 20)
                np.save(kept, np.append(value, draws))
            apart = [PatientSeparation(init=init, intra_mean=1, inter_mean=2, separation=0.75) for init in values]
            path = write_run(out, cell.pretraining, apart) / "report.json"
            exposure = {"patients": 7, "instances": 100, "steps": 15}
            edit_json(path, lambda report, exposure=exposure: report.update({"exposure": exposure}))
    preset = Preset(name="two", title="Two", conditions=conditions)
    apart_too = Preset(name="apart", title="Apart", conditions=conditions[:2], needs_scores=False, figure="distances")
    return Grid(presets=(preset, apart_too), repeats=repeats, measure=MEASURE)


def export(out: Path, grid: Grid, folder: Path) -> Summary:
    """Write the files; return the table as the folders give it."""
    inputs = Inputs(repeats=grid.repeats, results=Results(out), measure=MEASURE)
    write_export(grid, inputs, folder)
    return summarise(grid.presets[0].conditions, inputs, find_printed)


def from_files(grid: Grid, *folders: Path) -> Summary:
    kept = read_kept(folders, MEASURE)
    return tabulate(grid.presets[0].conditions, KeptLines(kept, grid.repeats, find_printed))


@pytest.mark.parametrize(
    "repeats", [Repeats(seeds=(0, 1, 2)), Repeats(seeds=(3,)), Repeats(seeds=(0, 1), splits=(0, 1))]
)
def test_the_files_give_the_tables_of_the_folders(tmp_path: Path, repeats: Repeats) -> None:
    """Several seeds, one seed, and splits; steps and instances stand beside every score."""
    grid = make_grid(tmp_path / "out", repeats, ("", "steps=9"))
    first = export(tmp_path / "out", grid, tmp_path / "files")
    again = from_files(grid, tmp_path / "files")
    assert score_sheet(again) == score_sheet(first)
    assert difference_sheet(again) == difference_sheet(first)
    assert len(first.differences) == 2  # within each exposure
    assert score_sheet(again).rows[1][-3:-1] == ("10 / 15", "200 / 300")
    kept, conditions = read_kept([tmp_path / "files"], MEASURE), grid.presets[1].conditions
    told = summarise_distances(conditions, repeats, Results(tmp_path / "out"))
    assert distance_sheet(summarise_distances(conditions, repeats, kept)) == distance_sheet(told)


def test_scores_that_are_not_defined_are_no_contradiction(tmp_path: Path) -> None:
    """Test patients of one class have no AUROC: no page could be made, of one export or of two."""
    grid = make_grid(tmp_path / "out", Repeats(seeds=(0, 1)))
    for path in (tmp_path / "out" / "evaluated").rglob("report.json"):
        edit_json(path, lambda report: [score.update(value=None) for score in report["scores"]])
    export(tmp_path / "out", grid, tmp_path / "files")
    assert score_sheet(from_files(grid, tmp_path / "files", tmp_path / "files")).rows


def test_each_encoder_of_a_table_stands_beside_its_own_untrained_one(tmp_path: Path) -> None:
    """One line for both would be a number of one of them, and its file would have two scores under one name."""
    grid = make_grid(tmp_path / "out", Repeats(seeds=(0, 1)), options=((), ("encoder=resnet1d",)))
    first = export(tmp_path / "out", grid, tmp_path / "files")
    again = from_files(grid, tmp_path / "files")
    assert score_sheet(again) == score_sheet(first)
    assert difference_sheet(again) == difference_sheet(first)
    means = {line.condition.row: line.spread.mean for line in first.lines if line.spread}
    cnn, resnet = "random encoder=cnn frame_samples=8", "random encoder=resnet1d frame_samples=8"
    assert list(means)[:2] == [cnn, resnet]
    assert means[cnn] != means[resnet]
    for line in first.lines[2:]:
        own = resnet if line.condition.options else cnn
        assert line.gain_value == pytest.approx(means[line.condition.row] - means[own])
    write_kept_pages(grid, read_kept([tmp_path / "files"], MEASURE), {}, tmp_path / "pages")
    assert check_page(tmp_path / "pages" / "two.md", [tmp_path / "files"]) > 0
    with_cnn = make_grid(tmp_path / "one", Repeats(seeds=(0, 1)))
    named = [line.condition.row for line in export(tmp_path / "one", with_cnn, tmp_path / "of one").lines]
    assert named == ["random", "cmsc", "simclr"]


def test_an_untrained_encoder_of_another_architecture_is_a_line_too(tmp_path: Path) -> None:
    """The method `random` has the encoder that the grid names, whatever the trained rows have."""
    repeats = Repeats(seeds=(0, 1), encoder="resnet1d")
    grid = make_grid(tmp_path / "out", repeats, methods=("cmsc", "random"))
    first = export(tmp_path / "out", grid, tmp_path / "files")
    names = ["random encoder=cnn frame_samples=8", "random encoder=resnet1d frame_samples=8", "cmsc"]
    assert [line.condition.row for line in first.lines] == names
    again = from_files(grid, tmp_path / "files")
    assert score_sheet(again) == score_sheet(first)
    assert [(one.a, one.b) for one in first.differences] == [("cmsc", "random")]
    assert difference_sheet(again) == difference_sheet(first)


def test_the_untrained_encoder_as_a_row_is_compared_from_files_too(tmp_path: Path) -> None:
    """Beside trained rows of the same architecture it is the line that all tables have."""
    grid = make_grid(tmp_path / "out", Repeats(seeds=(0, 1, 2), encoder="cnn"), methods=("cmsc", "random", "simclr"))
    first = export(tmp_path / "out", grid, tmp_path / "files")
    assert [line.condition.row for line in first.lines] == ["random", "cmsc", "simclr"]
    assert [(one.a, one.b) for one in first.differences] == [
        ("cmsc", "random"),
        ("cmsc", "simclr"),
        ("random", "simclr"),
    ]
    again = from_files(grid, tmp_path / "files")
    assert score_sheet(again) == score_sheet(first)
    assert difference_sheet(again) == difference_sheet(first)


def test_a_file_of_before_names_no_encoder_and_is_read(tmp_path: Path) -> None:
    grid = make_grid(tmp_path / "out", Repeats(seeds=(0, 1)))
    first = export(tmp_path / "out", grid, tmp_path / "files")
    for name in ("scores.csv", "patients.csv"):
        path = tmp_path / "files" / name
        rows = list(csv.DictReader(path.read_text().splitlines()))
        kept = [key for key in rows[0] if key != "encoder"]
        lines = [[row[key].replace("random encoder=cnn frame_samples=8", "random") for key in kept] for row in rows]
        path.write_text("\n".join(",".join(line) for line in [kept, *lines]) + "\n")
    assert score_sheet(from_files(grid, tmp_path / "files")) == score_sheet(first)


def test_a_changed_score_changes_its_interval_and_verdict(tmp_path: Path) -> None:
    """Both follow from scores.csv: an interval that was written down would stay as it was."""
    grid = make_grid(tmp_path / "out", Repeats(seeds=(0, 1, 2)))
    export(tmp_path / "out", grid, tmp_path / "files")
    path = tmp_path / "files" / "scores.csv"
    rows = list(csv.reader(path.read_text().splitlines()))
    place = rows[0].index("score")
    for row in (row for row in rows if row[0] == "cmsc"):
        row[place] = "0.990000"
    path.write_text("\n".join(",".join(row) for row in rows) + "\n")
    found = from_files(grid, tmp_path / "files")
    (difference,) = found.differences
    theirs = [0.99 - float(row[place]) for row in rows if row[0] == "simclr"]
    ends = interval_from_spreads(theirs, difference.interval.sd, difference.interval.overlap)
    assert (difference.interval.low, difference.interval.high) == pytest.approx(ends)
    assert found.lines[1].spread is not None
    assert found.lines[1].spread.mean == pytest.approx(0.99)


def test_exports_of_several_machines_are_read_together(tmp_path: Path) -> None:
    """A portion that another has in whole is taken from there; of other repetitions there is no interval."""
    whole, part = (Repeats(seeds=seeds) for seeds in ((0, 1, 2), (0,)))
    grid = make_grid(tmp_path / "out", whole)
    first = export(tmp_path / "out", grid, tmp_path / "files")
    export(tmp_path / "out", attrs.evolve(grid, repeats=part), tmp_path / "few")
    assert score_sheet(from_files(grid, tmp_path / "few", tmp_path / "files")) == score_sheet(first)
    shutil.copy(tmp_path / "few" / "patients.csv", tmp_path / "files" / "patients.csv")
    assert from_files(grid, tmp_path / "files").lines[1].interval is None


def test_pages_and_their_list_link_to_each_other_and_count_what_is_made(tmp_path: Path, no_figures: None) -> None:
    """From the files alone, for the tables that were asked for, of which some are not there yet."""
    grid = make_grid(tmp_path / "out", Repeats(seeds=(0, 1)))
    export(tmp_path / "out", grid, tmp_path / "files")
    more = Preset(name="other", title="Other", conditions=(attrs.evolve(PLACE, method="byol"),))
    asked = attrs.evolve(grid, presets=(*grid.presets, more), repeats=Repeats(seeds=(0, 1, 2)))
    told: list[str] = []
    kept = read_kept([tmp_path / "files"], MEASURE)
    counts = write_kept_pages(asked, kept, {}, tmp_path / "pages", told.append)
    assert told[0] == "two: 4 of 6 cells are made."
    assert [text.split(":")[0] for text in told] == list(counts)
    assert {name: (one.made, one.asked) for name, one in counts.items()} == {
        "two": (4, 6),
        "apart": (4, 6),
        "other": (0, 3),
    }
    index = (tmp_path / "pages" / "index.md").read_text()
    assert "| [two](two.md) |  | Two | 4 | 6 cells |" in index
    assert "| other |  | Other | 0 | 3 cells |" in index
    assert "4 of 9 cells are made. 4 of 6 pre-trainings are made." in index
    page = (tmp_path / "pages" / "two.md").read_text()
    assert "[All tables](index.md)" in page
    assert "4 of 6 cells are made." in page
    assert "| 2 of 3 |" in page
    assert (tmp_path / "pages" / "figures" / "two.png").exists()
    assert not (tmp_path / "pages" / "other.md").exists()


@pytest.mark.parametrize("seeds", [(0, 1, 2), (3,)])
def test_every_interval_and_verdict_of_a_page_follows_from_the_csv_files(
    tmp_path: Path, no_figures: None, seeds: tuple[int, ...]
) -> None:
    """By an oracle of its own, which reads the page."""
    grid = make_grid(tmp_path / "out", Repeats(seeds=seeds), ("", "steps=9"))
    export(tmp_path / "out", grid, tmp_path / "files")
    write_kept_pages(grid, read_kept([tmp_path / "files"], MEASURE), {}, tmp_path / "pages")
    # For each exposure: three intervals of means, two gains and one difference.
    assert check_page(tmp_path / "pages" / "two.md", [tmp_path / "files"]) == 12
    page = tmp_path / "pages" / "two.md"
    page.write_text(
        page.read_text().replace("| not told apart |", "| a is above |").replace("| one seed |", "| a is below |")
    )
    with pytest.raises(AssertionError):
        check_page(page, [tmp_path / "files"])


def test_seeds_that_were_exported_apart_have_no_interval_of_other_seeds(tmp_path: Path, no_figures: None) -> None:
    """The spread over patients of one seed, or of two others, is not that of the seeds that are shown."""
    whole = make_grid(tmp_path / "out", Repeats(seeds=(0, 1, 2)))
    for name, seeds in (("s0", (0,)), ("s1", (1,)), ("s01", (0, 1)), ("s12", (1, 2))):
        export(tmp_path / "out", attrs.evolve(whole, repeats=Repeats(seeds=seeds)), tmp_path / name)
    for seeds, alone in (((1,), "s1"), ((1, 2), "s12")):
        grid = attrs.evolve(whole, repeats=Repeats(seeds=seeds))
        expected = from_files(grid, tmp_path / alone)
        assert expected.lines[1].interval is not None
        for folders in (("s0", "s1", "s01", "s12"), ("s12", "s01", "s1", "s0")):
            found = from_files(grid, *(tmp_path / name for name in folders))
            assert score_sheet(found) == score_sheet(expected)
            assert difference_sheet(found) == difference_sheet(expected)
    apart = from_files(whole, tmp_path / "s0", tmp_path / "s12")
    assert apart.lines[1].done == 3
    assert apart.lines[1].interval is None
    assert not apart.differences
    write_kept_pages(whole, read_kept([tmp_path / "s0", tmp_path / "s12"], MEASURE), {}, tmp_path / "pages")
    assert "Rows without an interval: 3." in (tmp_path / "pages" / "two.md").read_text()


def test_scores_by_another_measure_stand_beside_and_are_of_the_same_seeds(tmp_path: Path) -> None:
    """Their mean is shown where all seeds of a row have one, with its distance from the paper's number."""
    grid = make_grid(tmp_path / "out", Repeats(seeds=(0, 1)))
    export(tmp_path / "out", grid, tmp_path / "files")
    rows = list(csv.reader((tmp_path / "files" / "scores.csv").read_text().splitlines()))
    at = {name: place for place, name in enumerate(rows[0])}
    others = [row for row in rows[1:] if row[0] == "cmsc" or (row[0], row[at["seed"]]) == ("simclr", "1")]
    for row in others:
        row[at["metric"]], row[at["score"]] = "auroc of logits", f"0.{5 + int(row[at['seed']])}"
    (tmp_path / "files" / "beside.csv").write_text("\n".join(",".join(row) for row in [rows[0], *others]) + "\n")
    sheet = score_sheet(from_files(grid, tmp_path / "files"))
    place = sheet.headings.index("auroc of logits")
    assert sheet.headings[place + 1] == "auroc of logits - paper"
    (printed,) = [line.printed for line in from_files(grid, tmp_path / "files").lines if line.condition.row == "cmsc"]
    assert printed is not None
    found = {row[sheet.headings.index("method")]: row[place : place + 2] for row in sheet.rows}
    assert found == {"random": ("", ""), "cmsc": ("0.550", f"{0.55 - printed.mean:+.3f}"), "simclr": ("", "")}


def test_two_scores_of_one_cell_are_refused(tmp_path: Path) -> None:
    """Which of them counts is not for us to choose."""
    grid = make_grid(tmp_path / "out", Repeats(seeds=(0, 1)))
    for name in ("a", "b"):
        export(tmp_path / "out", grid, tmp_path / name)
    assert from_files(grid, tmp_path / "a", tmp_path / "b") == from_files(grid, tmp_path / "a")
    path = tmp_path / "b" / "scores.csv"
    rows = list(csv.reader(path.read_text().splitlines()))
    rows[1][rows[0].index("score")] = "0.999999"
    path.write_text("\n".join(",".join(row) for row in rows) + "\n")
    with pytest.raises(RunFolderError, match=r"b/scores.csv has the score 0.999999 of cmsc .* 0/0, and another export"):
        read_kept([tmp_path / "a", tmp_path / "b"], MEASURE)


@pytest.mark.parametrize("name", ["scores.csv", "patients.csv", "runs.csv", "calls.csv"])
def test_a_file_that_was_cut_off_or_edited_badly_is_refused(tmp_path: Path, name: str) -> None:
    """A cut number is a number: without the end of its line it does not count."""
    grid = make_grid(tmp_path / "out", Repeats(seeds=(0, 1)))
    export(tmp_path / "out", grid, tmp_path / "files")
    path = tmp_path / "files" / name
    if name == "calls.csv":
        path.write_text(f"{path.read_text()}clocs grid run,2026-01-01T00:00:00+00:00,1.5,2,3,0,a machine,finished\n")
    whole = path.read_text()
    read_kept([tmp_path / "files"], MEASURE)
    lines = whole.splitlines(keepends=True)
    number = {"scores.csv": "score", "patients.csv": "sd", "runs.csv": "within", "calls.csv": "seconds"}[name]
    cells = lines[1].split(",")
    cells[lines[0].strip().split(",").index(number)] = "abc"
    edited = "".join([lines[0], ",".join(cells), *lines[2:]])
    for damaged, place in ((whole[:-1], len(lines)), (whole[:-4], len(lines)), (edited, 2)):
        path.write_text(damaged)
        with pytest.raises(RunFolderError, match=rf"{name} is damaged or cut off, at line {place}: export the grid"):
            read_kept([tmp_path / "files"], MEASURE)


def test_files_of_another_grid_are_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    grid = make_grid(tmp_path / "out", Repeats(seeds=(0,)))
    export(tmp_path / "out", grid, tmp_path / "files")
    other = Preset(name="other", title="Other", conditions=(attrs.evolve(PLACE, method="byol"),))
    asked = attrs.evolve(grid, presets=(other,))
    with pytest.raises(SettingsError, match="The exports have 3 scores of auroc, and none is of a cell"):
        write_kept_pages(asked, read_kept([tmp_path / "files"], MEASURE), {}, tmp_path / "pages")
    with pytest.raises(SettingsError, match="has 3 scores, and nothing is done of the tables"):
        export(tmp_path / "out", asked, tmp_path / "more")
    assert not (tmp_path / "pages").exists()
    assert not (tmp_path / "more").exists()


def test_a_folder_that_is_no_export_is_said_to_be_none(tmp_path: Path) -> None:
    """And a file of an older version is not read as if it were a new one."""
    with pytest.raises(RunFolderError, match=r"is no export: it has no scores.csv. `clocs grid export GRID"):
        read_kept([tmp_path], MEASURE)
    (tmp_path / "scores.csv").write_text("method,score\n")
    with pytest.raises(RunFolderError, match="has other columns"):
        read_kept([tmp_path], MEASURE)
