"""Draws that are made while a grid runs are those that its page would make, and no problem with them stops the grid."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import attrs
import numpy as np
import pytest
from grid_folders import write_evaluation
from made_predictions import make_predictions

import clocs_core.grids.draws
from clocs_core.contracts.grids import Condition
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import GridCell
from clocs_core.grids.draws import fill_draws, read_draws, sources_of
from clocs_core.grids.draws_ahead import drawing_ahead
from clocs_core.grids.measure import Measure

PLACE = Condition(method="cmsc", pretraining="chapman", downstream="chapman", protocol="linear", label_fraction=0.5)
MEASURE = Measure(resamples=15)


@pytest.fixture
def cells(tmp_path: Path) -> tuple[GridCell, ...]:
    """The cells of two seeds, with predictions."""
    found = Repeats(seeds=(0, 1)).cells(PLACE)
    for cell in found:
        folder = write_evaluation(tmp_path, [cell])
        make_predictions(folder / "predictions.npz", {"cmsc": 0.8}, "linear", 0.5, cell.pretraining.seed)
    return found


def kept(out: Path) -> dict[str, list[float]]:
    return {str(path.relative_to(out)): np.load(path).tolist() for path in (out / "draws").rglob("*.npy")}


def sources(cell: GridCell, out: Path):
    (predictions,) = out.glob(f"evaluated/{cell.pretraining.name}/*/predictions.npz")
    return sources_of(cell, predictions, MEASURE, out)


@pytest.mark.parametrize("at_once", [1, 8])
def test_draws_are_those_that_the_page_makes(tmp_path: Path, cells: tuple[GridCell, ...], at_once: int) -> None:
    made = threading.Event()
    with drawing_ahead(MEASURE, tmp_path, at_once) as scored:
        for cell in cells:
            scored([cell])
        while len(kept(tmp_path)) < 4:  # two encoders for each of two seeds
            made.wait(0.01)
    ahead = kept(tmp_path)
    for name in ahead:
        (tmp_path / name).unlink()
    fill_draws([one for cell in cells for one in sources(cell, tmp_path)], 2, lambda done, total: None)
    assert kept(tmp_path) == ahead


def test_draws_of_older_predictions_are_made_anew(tmp_path: Path, cells: tuple[GridCell, ...]) -> None:
    """An evaluation that is made again would have the mean of the new predictions and the interval of the old ones."""
    (cell, _) = cells
    source, _ = sources(cell, tmp_path)
    fill_draws([source], 1, lambda done, total: None)
    before = read_draws(source)
    make_predictions(source.predictions, {"cmsc": 0.99}, "linear", 0.5, cell.pretraining.seed)
    later = source.kept.stat().st_mtime_ns + 10**9
    os.utime(source.predictions, ns=(later, later))
    assert read_draws(source) is None
    fill_draws([source], 1, lambda done, total: None)
    os.utime(source.kept, ns=(later, later))  # the clock of this test is a second ahead
    found = read_draws(source)
    assert before is not None
    assert found is not None
    assert found.value > before.value
    source.predictions.unlink()
    again = read_draws(source)  # predictions may be deleted
    assert again is not None
    assert again.value == found.value


def test_nothing_is_drawn_of_what_has_no_report_or_is_damaged(tmp_path: Path, cells: tuple[GridCell, ...]) -> None:
    first, second = cells
    (damaged,) = tmp_path.glob(f"evaluated/{first.pretraining.name}/*/predictions.npz")
    damaged.write_bytes(damaged.read_bytes()[:100])
    unknown = attrs.evolve(second, pretraining=attrs.evolve(second.pretraining, seed=7))
    with drawing_ahead(MEASURE, tmp_path, 1) as scored:
        for cell in (first, unknown, second):  # one thread: the last is drawn after the others were tried
            scored([cell])
        while len(kept(tmp_path)) < 2:
            threading.Event().wait(0.01)
    only = sources(second, tmp_path)[0].kept.parent
    assert {tmp_path / Path(name).parent for name in kept(tmp_path)} == {only}


def test_an_interrupted_grid_waits_for_no_draw_that_has_not_begun(
    tmp_path: Path, cells: tuple[GridCell, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()
    tried: list[int] = []

    def slowly(each):
        tried.append(len(each))
        began.set()
        go_on.wait(60)
        return len(each)

    monkeypatch.setattr(clocs_core.grids.draws, "make_draws", slowly)

    def interrupted() -> None:
        with drawing_ahead(MEASURE, tmp_path, 1) as scored:
            for cell in cells:
                scored([cell])
            assert began.wait(60)
            threading.Timer(0.2, go_on.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert tried == [2], "the draws of the second cell had not begun"
