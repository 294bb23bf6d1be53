"""Figure 4 from the reports: which curves are drawn, their mean by hand, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from grid_folders import write_evaluation

from clocs_core.artifacts.curves import CurvePoint
from clocs_core.artifacts.reports import Curve
from clocs_core.contracts.grids import Condition
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import GridCell
from clocs_core.grids.learning import draw_learning, mean_curve, summarise_learning
from clocs_core.grids.presets import Preset
from clocs_core.grids.results import Results

PLACE = Condition(
    method="cmsc", pretraining="chapman", downstream="physionet2017", protocol="finetune", part="validation"
)
SEEDS = Repeats(seeds=(0, 1))
SHARES = [attrs.evolve(PLACE, label_fraction=share) for share in (0.25, 1.0)]
PRESET = Preset(name="less", printed_in="Figure 4", title="More", conditions=(), figure="less")


def curve(init: str, share: float, *scores: float) -> Curve:
    points = tuple(CurvePoint(epoch, 1.0, 1.0, score) for epoch, score in enumerate(scores, 1))
    return Curve(protocol="finetune", init=init, label_fraction=share, metric="auroc", values=points)


def scores(found: Curve) -> tuple[float, ...]:
    return tuple(point.validation_score for point in found.values)


def write(out: Path, cell: GridCell, *curves: Curve) -> None:
    """An evaluation at both F."""
    cells = [attrs.evolve(cell, label_fraction=share) for share in (0.25, 1.0)]
    write_evaluation(out, cells, curves=curves)


def kept(out: Path, *seeds: int) -> Results:
    """Evaluations of these seeds at both F: four curves each."""
    for seed in seeds:
        each = [curve(init, share, seed / 10, share) for init in ("cmsc", "random") for share in (0.25, 1.0)]
        write(out, SEEDS.cells(PLACE)[seed], *each)
    return Results(out)


def test_the_mean_is_over_the_epochs_that_all_repetitions_have() -> None:
    """Later, only those that stopped late are left, and a mean of them would jump."""
    epochs, means = mean_curve([curve("a", 1, 0.2, 0.4, 0.6), curve("a", 1, 0.4, 0.8), curve("a", 1, 0.6, 0.6, 0.9)])
    assert epochs == [1, 2]
    assert means == pytest.approx([(0.2 + 0.4 + 0.6) / 3, (0.4 + 0.8 + 0.6) / 3])
    epochs, means = mean_curve([curve("a", 1, float("nan"), 0.4), curve("a", 1, 0.5, 0.6)])
    assert (epochs, means) == ([2], [0.5])


def test_methods_are_drawn_at_every_share_and_random_at_the_largest(tmp_path: Path) -> None:
    """The paper's claim: CMSC with a quarter of the labels beside random initialisation with all of them."""
    lines = summarise_learning(SHARES, SEEDS, kept(tmp_path, 0, 1))
    assert [(line.name, len(line.curves), line.without) for line in lines] == [
        ("cmsc, F = 0.25", 2, 0),
        ("cmsc, F = 1", 2, 0),
        ("random, F = 1", 2, 0),
    ]
    assert [scores(found) for found in lines[0].curves] == [(0.0, 0.25), (0.1, 0.25)]
    assert {found.init for found in lines[2].curves} == {"random"}


def test_random_counts_once_a_repetition_whichever_methods_stand_beside_it(tmp_path: Path) -> None:
    """Two methods of one seed have the same control."""
    both = [*SHARES, *(attrs.evolve(one, method="simclr") for one in SHARES)]
    for one in (both[1], both[3]):
        for cell in SEEDS.cells(one):
            write(tmp_path, cell, curve(one.method, 1.0, 0.5), curve("random", 1.0, 0.4))
    (random,) = (line for line in summarise_learning(both, SEEDS, Results(tmp_path)) if line.init == "random")
    assert len(random.curves) == 2


def test_conditions_that_a_stand_in_makes_equal_are_drawn_once(tmp_path: Path) -> None:
    """One data set may stand in for two of the paper: the same cells, under two printed names."""
    twice = [*SHARES, *(attrs.evolve(one, printed_pretraining="physionet2020") for one in SHARES)]
    lines = summarise_learning(twice, SEEDS, kept(tmp_path, 0, 1))
    assert [line.name for line in lines] == ["cmsc, F = 0.25", "cmsc, F = 1", "random, F = 1"]


def test_evaluations_of_before_curves_were_kept_are_counted_and_said(tmp_path: Path) -> None:
    """A figure of one seed must not pass for one of five."""
    for name in ("one", "none"):
        write(tmp_path / name, SEEDS.cells(PLACE)[1])
    (drawing,) = draw_learning(PRESET, summarise_learning(SHARES, SEEDS, kept(tmp_path / "one", 0)))
    assert drawing.caption.endswith("3 of 6 fine-tunings are of before curves were kept, and are not drawn.")
    (drawing,) = draw_learning(PRESET, summarise_learning(SHARES, SEEDS, Results(tmp_path / "none")))
    assert "3 of 3 fine-tunings are of before curves were kept" in drawing.caption
    assert drawing.png.startswith(b"\x89PNG")
    (drawing,) = draw_learning(PRESET, summarise_learning(SHARES, SEEDS, kept(tmp_path / "all", 0, 1)))
    assert "before curves" not in drawing.caption
    assert drawing.svg.startswith(b"<?xml")
    assert draw_learning(PRESET, summarise_learning(SHARES, SEEDS, Results(tmp_path / "empty"))) == ()


def test_the_same_numbers_give_the_same_figure(tmp_path: Path) -> None:
    """Files are compared by their bytes when a grid is made again."""
    lines = summarise_learning(SHARES, SEEDS, kept(tmp_path, 0, 1))
    assert draw_learning(PRESET, lines) == draw_learning(PRESET, lines)


def test_an_epoch_without_a_score_stays_one(tmp_path: Path) -> None:
    """NaN is null in a report, and floats come back to the last bit."""
    write(tmp_path, SEEDS.cells(PLACE)[0], curve("cmsc", 0.25, 0.5, float("nan"), 1 / 3))
    (line, *_) = summarise_learning(SHARES, SEEDS, Results(tmp_path))
    assert repr(scores(line.curves[0])) == repr((0.5, float("nan"), 1 / 3))
