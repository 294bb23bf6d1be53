"""Means, spreads, intervals and differences against numbers worked out by hand and loops from their formulas."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import attrs
import numpy as np
import pytest
from edited_files import edit_json
from grid_folders import write_evaluation, write_run
from hypothesis import given, settings
from hypothesis import strategies as st
from made_predictions import make_predictions

from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import Score
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import GridCell
from clocs_core.grids.measure import Inputs, Measure
from clocs_core.grids.results import Results
from clocs_core.grids.rows import difference_sheet, markdown, say_reading, score_sheet
from clocs_core.grids.summary import Summary, spread, summarise
from clocs_plugins.paper_tables.published import find_printed

PLACE = Condition(method="cmsc", pretraining="chapman", downstream="chapman", protocol="linear")


def by_method(*names: str) -> list[Condition]:
    return [attrs.evolve(PLACE, method=name) for name in names]


def score(cell: GridCell, init: str, value: float) -> Score:
    return Score(
        *(cell.protocol, init, cell.downstream, cell.label_fraction),  # type: ignore[arg-type]
        *("auroc", "frame", value, value - 0.1, value + 0.1),
    )


def write(out: Path, cell: GridCell, trained: float, random: float, **more: str) -> Path:
    scores = (score(cell, cell.pretraining.method, trained), score(cell, "random", random))
    return write_evaluation(out, [cell], scores, **more)


def table(conditions: list[Condition], repeats: Repeats, out: Path, resamples: int = 15) -> Summary:
    measure = Measure(resamples=resamples)
    return summarise(conditions, Inputs(repeats=repeats, results=Results(out), measure=measure), find_printed)


# ------------------------------------------------------------------------------------------------------------- spreads


def sd_by_hand(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=4), min_size=2, max_size=4))
@settings(max_examples=40)
def test_the_spread_over_seeds_is_within_splits_and_that_over_splits_is_of_their_means(rows: list[list[float]]) -> None:
    """Two sources of chance: which weights a run begins with, and which patients test it."""
    found = spread(rows)
    assert found is not None
    every = [value for row in rows for value in row]
    assert found.mean == pytest.approx(sum(every) / len(every))
    pooled = math.sqrt(sum(sd_by_hand(row) ** 2 for row in rows) / len(rows))
    assert found.sd_seeds == pytest.approx(pooled, abs=1e-9)
    assert found.sd_splits == pytest.approx(sd_by_hand([sum(row) / len(row) for row in rows]), abs=1e-9)


def test_one_value_has_no_spread_and_none_has_no_mean() -> None:
    """A single run says nothing about the next; ± 0 would claim that it does."""
    one = spread([[0.7]])
    assert one is not None
    assert (one.mean, one.sd_seeds, one.sd_splits) == (0.7, None, None)
    assert spread([]) is None
    assert spread([[]]) is None


# -------------------------------------------------------------------------------------------------------------- tables


def test_a_table_by_hand(tmp_path: Path) -> None:
    """Two methods, three seeds, one of which is missing for SimCLR; the paper's numbers stand beside."""
    repeats = Repeats(seeds=(0, 1, 2))
    cmsc, simclr = by_method("cmsc", "simclr")
    for cell, value, untrained in zip(repeats.cells(cmsc), (0.80, 0.84, 0.88), (0.60, 0.62, 0.64), strict=True):
        write(tmp_path, cell, value, untrained)
    for cell, value in zip(repeats.cells(simclr)[:2], (0.70, 0.74), strict=True):
        write(tmp_path, cell, value, 0.99)
    write(tmp_path, repeats.cells(simclr)[2], 0, 0, error="Error: broke")
    random, first, second = table([cmsc, simclr], repeats, tmp_path).lines
    assert random.condition.method == "random"
    assert random.spread is not None
    assert random.spread.values == ((0.60, 0.62, 0.64),)  # once a seed, of the first method that has it
    assert first.spread is not None
    assert first.spread.mean == pytest.approx(0.84)
    assert first.spread.sd_seeds == pytest.approx(0.04)
    assert first.gain_value == pytest.approx(0.22)
    assert first.printed is not None
    assert first.printed.printed == "0.896 ± 0.005"
    assert first.off == pytest.approx(0.84 - 0.896)
    assert second.spread is not None
    assert second.spread.mean == pytest.approx(0.72)
    assert (second.done, second.wanted, second.errors) == (2, 3, ("Error: broke",))
    assert second.gain_value == pytest.approx(0.72 - 0.99)


def test_the_table_as_text(tmp_path: Path) -> None:
    """What all lines share stands above; ours, the paper's and the difference stand side by side."""
    repeats = Repeats(seeds=(0, 1))
    (cmsc,) = by_method("cmsc")
    for cell, value in zip(repeats.cells(cmsc), (0.9, 0.8), strict=True):
        write(tmp_path, cell, value, 0.5)
    text = markdown(score_sheet(table([cmsc], repeats, tmp_path)))
    assert text.splitlines() == [
        "pre-training chapman, downstream chapman, protocol linear, leads 4, E 128, F 0.5, patients test",
        "",
        "| method | ours, mean ± sd over seeds | 95 % over seeds and patients | above random | the paper "
        "| ours - paper | runs |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| random | 0.500 ± 0.000 |  |  |  |  | 2 |",
        "| cmsc | 0.850 ± 0.071 |  | +0.350 | 0.896 ± 0.005 | -0.046 | 2 |",
    ]


def test_exposures_have_a_column_and_no_difference_between_them(tmp_path: Path) -> None:
    """The own exposure of each method, and the same for all: two tables in one, whose untrained encoder is the same."""
    repeats = Repeats(seeds=(0, 1))
    lines = [attrs.evolve(one, exposure=much) for much in ("", "steps=9") for one in by_method("cmsc", "simclr")]
    for one in lines:
        for cell in repeats.cells(one):
            write(tmp_path, cell, 0.9, 0.5)
    found = table(lines, repeats, tmp_path)
    sheet = score_sheet(found)
    assert "exposure" not in sheet.shared
    assert [row[:2] for row in sheet.rows] == [
        *(("own", "random"), ("own", "cmsc"), ("own", "simclr")),
        *(("steps=9", "random"), ("steps=9", "cmsc"), ("steps=9", "simclr")),
    ]
    assert [line.printed is None for line in found.lines] == [True, False, False, True, True, True]


def test_what_each_method_saw_stands_beside_its_score(tmp_path: Path) -> None:
    """A method that stops at once has seen less than one that trains for long; a reader must see that."""
    repeats = Repeats(seeds=(0, 1))
    (cmsc,) = by_method("cmsc")
    for cell, epochs in zip(repeats.cells(cmsc), ((10, 4), (20, 8)), strict=True):
        write(tmp_path, cell, 0.9, 0.5)
        path = write_run(tmp_path, cell.pretraining) / "report.json"
        run, best = epochs
        exposure = {"patients": 7, "instances": 100, "steps": 5 * run}
        more = {"epochs_run": run, "best_epoch": best, "exposure": exposure}
        edit_json(path, lambda report, more=more: report.update(more))
    sheet = score_sheet(table([cmsc], repeats, tmp_path))
    assert sheet.headings[-3:] == ("steps, to best / all", "instances seen, to best / all", "runs")
    assert [row[-3:] for row in sheet.rows] == [("", "", "2"), ("30 / 75", "600 / 1,500", "2")]


def test_places_that_differ_are_columns_and_splits_have_a_spread_of_their_own(tmp_path: Path) -> None:
    """A table over F and two splits."""
    repeats = Repeats(seeds=(0,), splits=(0, 1))
    both = [attrs.evolve(PLACE, label_fraction=share) for share in (0.25, 1.0)]
    for cell in (cell for one in both for cell in repeats.cells(one)):
        write(tmp_path, cell, 0.6 + 0.1 * cell.pretraining.split_seed, 0.5)
    sheet = score_sheet(table(both, repeats, tmp_path))
    assert sheet.headings[:4] == ("F", "method", "ours, mean ± sd over seeds", "sd over splits")
    assert [row[:4] for row in sheet.rows] == [
        ("0.25", "random", "0.500", "0.000"),
        ("0.25", "cmsc", "0.650", "0.071"),
        ("1", "random", "0.500", "0.000"),
        ("1", "cmsc", "0.650", "0.071"),
    ]
    assert sheet.begins == (False, False, True, False)


def test_cells_of_other_settings_do_not_count(tmp_path: Path) -> None:
    """A folder holds many grids; a score on validation patients must not slip into a table of test patients."""
    repeats = Repeats()
    (cell,) = repeats.cells(PLACE)
    write(tmp_path, attrs.evolve(cell, part="validation"), 0.9, 0.5)
    _, line = table([PLACE], repeats, tmp_path).lines
    assert line.spread is None
    assert line.done == 0


# ----------------------------------------------------------------------------------------------------------- intervals


def area_by_hand(score_of: np.ndarray, label: np.ndarray, weight: list[int]) -> float:
    """The share of (positive, negative) pairs in the right order, ties half, each pair as often as both were drawn."""
    right = total = 0.0
    for up, is_up in enumerate(label):
        for down, is_other in enumerate(label):
            if is_up == 1 and is_other == 0:
                pairs = weight[up] * weight[down]
                total += pairs
                right += pairs * (
                    1.0 if score_of[up] > score_of[down] else 0.5 if score_of[up] == score_of[down] else 0
                )
    return right / total


def draws_by_hand(path: Path, name: str, resamples: int, split_seed: int) -> list[float]:
    """AUROC of the second class on draws of 40 patients, by the documented seed: SHA-256 of split seed and purpose."""
    with np.load(path) as file:
        probability, label = file[name], file["label"]
    seed = int.from_bytes(hashlib.sha256(f"{split_seed}\tbootstrap".encode()).digest()[:8], "little") >> 1
    rng = np.random.default_rng(seed)
    areas = []
    for _ in range(resamples):
        drawn = rng.integers(0, 40, 40).tolist()
        weight = [drawn.count(row // 2) for row in range(80)]  # rows come patient by patient, in the order of names
        areas.append(area_by_hand(probability[:, 1], label, weight))
    return areas


def over_two_seeds(values: list[float], draws: list[list[float]]) -> tuple[float, float]:
    """The interval of docs/protocols.md, where the overlap is 0; Student's t has one degree of freedom."""
    mean = [sum(two) / 2 for two in zip(*draws, strict=True)]
    patients, between = float(np.var(mean)), (values[0] - values[1]) ** 2 / 4
    half = (between * 12.706204736432095 + patients * 1.959963984540054) / math.sqrt(patients + between)
    return sum(values) / 2 - half, sum(values) / 2 + half


def cut(numbers: list[float]) -> tuple[float, float]:
    low, high = np.percentile(numbers, [2.5, 97.5])
    return float(low), float(high)


def value_by_hand(path: Path, init: str) -> float:
    """AUROC of the second class of all 40 patients."""
    with np.load(path) as file:
        return area_by_hand(file[f"probability/linear/{init}/0.5"][:, 1], file["label"], [1] * 80)


@pytest.fixture
def scored(tmp_path: Path) -> tuple[Path, list[Condition], Repeats, dict[str, Path]]:
    """Two methods and two seeds with predictions; the folder of each."""
    repeats, conditions, folders = Repeats(seeds=(0, 1)), by_method("cmsc", "simclr"), {}
    for condition, sharpness in zip(conditions, (0.8, 0.1), strict=True):
        for cell in repeats.cells(condition):
            folder = write(tmp_path, cell, 0.9, 0.5)
            predictions = folder / "predictions.npz"
            make_predictions(predictions, {condition.method: sharpness}, "linear", 0.5, cell.pretraining.seed)
            folders[f"{condition.method}-{cell.pretraining.seed}"] = folder
    return tmp_path, conditions, repeats, folders


def test_intervals_are_those_of_the_mean_over_seeds_on_the_same_drawn_patients(scored) -> None:
    """Seeds share their test patients, so that patients and seeds can be told apart."""
    out, conditions, repeats, folders = scored
    _, line, _ = table(conditions, repeats, out).lines
    files = [folders[f"cmsc-{seed}"] / "predictions.npz" for seed in (0, 1)]
    own, untrained = (
        [draws_by_hand(file, f"probability/linear/{init}/0.5", 15, 0) for file in files] for init in ("cmsc", "random")
    )
    values, others = ([value_by_hand(file, name) for file in files] for name in ("cmsc", "random"))
    assert line.interval is not None
    low, high = over_two_seeds(values, own)
    assert high > 1  # two seeds tell little; there is no AUROC above 1
    assert (line.interval.low, line.interval.high) == pytest.approx((low, 1.0))
    assert line.gain is not None
    gains = [a - b for a, b in zip(values, others, strict=True)]
    drawn = [[a - b for a, b in zip(*seed, strict=True)] for seed in zip(own, untrained, strict=True)]
    assert (line.gain.low, line.gain.high) == pytest.approx(over_two_seeds(gains, drawn))


def test_differences_are_paired_draw_by_draw(scored) -> None:
    """The same patients stand in both: what is hard about them cancels."""
    out, conditions, repeats, folders = scored
    summary = table(conditions, repeats, out)
    (found,) = summary.differences
    ours, theirs = (
        [
            draws_by_hand(folders[f"{method}-{seed}"] / "predictions.npz", f"probability/linear/{method}/0.5", 15, 0)
            for seed in (0, 1)
        ]
        for method in ("cmsc", "simclr")
    )
    apart = [[a - b for a, b in zip(*seed, strict=True)] for seed in zip(ours, theirs, strict=True)]
    values = [
        value_by_hand(folders[f"cmsc-{seed}"] / "predictions.npz", "cmsc")
        - value_by_hand(folders[f"simclr-{seed}"] / "predictions.npz", "simclr")
        for seed in (0, 1)
    ]
    assert (found.a, found.b, found.repetitions) == ("cmsc", "simclr", 2)
    low, high = over_two_seeds(values, apart)
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    assert low > 0
    assert difference_sheet(summary).rows[0][-2] == "a is above"


@pytest.mark.parametrize(
    ("low", "high", "repetitions", "said"),
    [
        (0.1, 0.2, 5, "a is above"),
        (-0.2, -0.1, 5, "a is below"),
        (-0.1, 0.1, 5, "not told apart"),
        (0.0, 0.1, 5, "not told apart"),
        (0.1, 0.2, 1, "one seed"),
        (math.nan, math.nan, 5, "not defined"),
    ],
)
def test_a_verdict_follows_from_the_interval_over_seeds_and_patients(low, high, repetitions, said) -> None:
    """One repetition has none: its interval says nothing about other seeds."""
    assert say_reading(low, high, repetitions) == said


def test_a_difference_is_over_the_seeds_that_both_have(scored) -> None:
    """A mean over five seeds less one over three would be a difference of seeds too."""
    out, conditions, repeats, folders = scored
    (folders["simclr-1"] / "report.json").unlink()
    (found,) = table(conditions, repeats, out).differences
    assert found.repetitions == 1
    own = draws_by_hand(folders["cmsc-0"] / "predictions.npz", "probability/linear/cmsc/0.5", 15, 0)
    other = draws_by_hand(folders["simclr-0"] / "predictions.npz", "probability/linear/simclr/0.5", 15, 0)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        cut([a - b for a, b in zip(own, other, strict=True)])
    )


def test_a_table_says_where_a_lower_score_is_better(scored) -> None:
    """A number above that of `random` is then a worse one."""
    out, conditions, repeats, _ = scored
    found = table(conditions, repeats, out)
    for sheet in (score_sheet, difference_sheet):
        assert "lower is better" not in sheet(found).shared
        assert sheet(attrs.evolve(found, better="lower")).shared == f"{sheet(found).shared}, lower is better"


def test_other_patients_are_not_paired(scored) -> None:
    """A draw names patients by their number: of other patients, the same numbers are other people."""
    out, conditions, repeats, _ = scored
    write(out, repeats.cells(conditions[1])[1], 0.9, 0.5, patients="of other patients")
    (found,) = table(conditions, repeats, out).differences
    assert found.repetitions == 1
    for cell in (cell for one in conditions for cell in repeats.cells(one)):
        write(out, cell, 0.9, 0.5, patients="")
    assert table(conditions, repeats, out).differences == ()


@pytest.mark.parametrize("what", ["patient", "record", "label"])
def test_other_rows_under_one_split_are_not_paired(scored, what: str) -> None:
    """Frames of another length, or other labels, leave other patients, and draws that name others."""
    out, conditions, repeats, folders = scored
    path = folders["simclr-1"] / "predictions.npz"
    with np.load(path) as file:
        held = {name: file[name] for name in file.files}
    held[what] = 1 - held[what] if what == "label" else np.char.add("other ", held[what])
    np.savez(path, **held)
    (found,) = table(conditions, repeats, out).differences
    assert found.repetitions == 1


def test_draws_are_made_once(scored, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand bootstrap samples of a large test set take seconds; a page is made many times."""
    out, conditions, repeats, _ = scored
    before = table(conditions, repeats, out)
    monkeypatch.setattr("clocs_core.grids.draws.bootstrap", lambda *_: pytest.fail("drawn again"))
    after = table(conditions, repeats, out)
    assert score_sheet(after) == score_sheet(before)


def test_a_cell_without_predictions_has_a_mean_and_no_interval(scored) -> None:
    """Somebody may have deleted them to save space; the report still holds the score."""
    out, conditions, repeats, folders = scored
    (folders["cmsc-1"] / "predictions.npz").unlink()
    _, line, other = table(conditions, repeats, out).lines
    assert line.spread is not None
    assert line.interval is None
    assert line.gain is None
    assert other.interval is not None
