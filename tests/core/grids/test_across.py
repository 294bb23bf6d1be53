"""Conditions of different places of a table are compared on the same drawn patients, as methods of one place are."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest
from grid_folders import write_evaluation

from clocs_core.contracts.grids import Condition, nothing_published
from clocs_core.contracts.scores import Score
from clocs_core.evaluation.over_seeds import interval_from_spreads
from clocs_core.grids.across import pairs_across
from clocs_core.grids.axes import Repeats
from clocs_core.grids.definition import Grid
from clocs_core.grids.draws import source_of
from clocs_core.grids.export import write_export
from clocs_core.grids.exported_files import read_kept
from clocs_core.grids.exported_tables import KeptLines
from clocs_core.grids.measure import Inputs, Measure
from clocs_core.grids.presets import Preset
from clocs_core.grids.results import Results
from clocs_core.grids.summary import tabulate

PLACE = Condition(method="cmsc", pretraining="chapman", downstream="cardiology", protocol="finetune")
MEASURE = Measure(resamples=20)
SEEDS = (0, 1, 2)


def at(**changes: object) -> Condition:
    return attrs.evolve(PLACE, **changes)  # type: ignore[arg-type]


FEWER = Preset(
    name="fewer", title="Fewer", figure="less", conditions=tuple(at(label_fraction=one) for one in (0.25, 0.5, 1.0))
)
WIDER = Preset(
    name="wider",
    title="Wider",
    figure="dimension",
    conditions=tuple(at(method=name, embedding_dim=one) for one in (32, 128) for name in ("cmsc", "simclr")),
)


def test_fractions_are_compared_with_all_labels_and_dimensions_with_smaller_ones() -> None:
    fewer = [(one.a.label_fraction, one.b.label_fraction, one.untrained) for one in pairs_across(FEWER)]
    assert fewer == [(0.25, 1.0, True), (0.5, 1.0, True), (1.0, 1.0, True)]
    wider = [(one.a.method, one.a.embedding_dim, one.b.method, one.b.embedding_dim) for one in pairs_across(WIDER)]
    assert wider == [("cmsc", 128, "cmsc", 32), ("simclr", 128, "simclr", 32)]
    assert pairs_across(attrs.evolve(FEWER, figure="dots")) == ()


Draws = dict[tuple[Condition, str, int], np.ndarray]


def write_grid(out: Path, preset: Preset) -> tuple[Grid, Draws]:
    """Evaluations with draws. Return for each condition, encoder and seed the score and, after it, its draws."""
    grid, made = Grid(presets=(preset,), repeats=Repeats(seeds=SEEDS), measure=MEASURE), {}
    patients = np.random.default_rng(1).normal(0, 0.05, 20)  # they are easy or hard for all
    for one in preset.conditions:
        for cell in grid.repeats.cells(one):
            seed, scores = cell.pretraining.seed, []
            for init in (one.method, "random"):  # the untrained encoder is the same for all methods
                rng = np.random.default_rng(
                    [len(init), seed, cell.pretraining.embedding_dim, int(4 * cell.label_fraction)]
                )
                value = round(rng.uniform(0.5, 0.9), 6)
                scores.append(
                    Score(cell.protocol, init, cell.downstream, cell.label_fraction, "auroc", "frame", value, 0, 1)
                )
                made[one, init, seed] = np.append(value, value + patients + rng.normal(0, 0.01, 20))
            folder = write_evaluation(out, [cell], scores, commit="abc")
            for init in (one.method, "random"):
                kept = source_of(cell, init, folder / "predictions.npz", MEASURE, out).kept
                kept.parent.mkdir(parents=True, exist_ok=True)
                np.save(kept, made[one, init, seed])
    return grid, made


@pytest.mark.parametrize("preset", [FEWER, WIDER])
def test_the_files_give_paired_intervals_between_places(tmp_path: Path, preset: Preset) -> None:
    """The mean of the paired differences of seeds, and the spread of its draws, by a loop."""
    grid, made = write_grid(tmp_path / "out", preset)
    inputs = Inputs(repeats=grid.repeats, results=Results(tmp_path / "out"), measure=MEASURE)
    write_export(grid, inputs, tmp_path / "files")
    kept = KeptLines(read_kept([tmp_path / "files"], MEASURE), grid.repeats, nothing_published)
    lines = {line.condition: line for line in tabulate(preset.conditions, kept).lines}
    pairs = pairs_across(preset)
    assert pairs
    for pair in pairs:
        init = "random" if pair.untrained else pair.b.method
        other = lines[attrs.evolve(pair.b.context, method="random") if pair.untrained else pair.b]
        found = kept.across(lines[pair.a], other)
        assert found is not None
        apart = [made[pair.a, pair.a.method, seed] - made[pair.b, init, seed] for seed in SEEDS]
        values = [one[0] for one in apart]
        assert found.value == pytest.approx(np.mean(values), abs=1e-6)
        each = np.stack([one[1:] for one in apart])
        assert found.sd == pytest.approx(each.mean(axis=0).std(), rel=0.2)
        low, high = interval_from_spreads(values, found.sd, found.overlap)
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)
        assert found.sd < 0.5 * other.interval.sd  # the patients that both share do not count


def test_a_pair_that_was_not_exported_has_no_interval(tmp_path: Path) -> None:
    """An older export has no such file; and one of a single seed has no interval to make."""
    grid, _ = write_grid(tmp_path / "out", WIDER)
    inputs = Inputs(repeats=grid.repeats, results=Results(tmp_path / "out"), measure=MEASURE)
    write_export(grid, inputs, tmp_path / "files")
    (tmp_path / "files" / "across.csv").unlink()
    kept = KeptLines(read_kept([tmp_path / "files"], MEASURE), grid.repeats, nothing_published)
    lines = {line.condition: line for line in tabulate(WIDER.conditions, kept).lines}
    (first, *_) = pairs_across(WIDER)
    assert kept.across(lines[first.a], lines[first.b]) is None
    one = attrs.evolve(grid, repeats=Repeats(seeds=(0,)))
    write_export(one, attrs.evolve(inputs, repeats=one.repeats), tmp_path / "single")
    assert len((tmp_path / "single" / "across.csv").read_text().splitlines()) == 1
