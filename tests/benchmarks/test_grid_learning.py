"""Figure 4 from the ledger: which curves are drawn, their mean by hand, and what is said where there is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest
from grid.axes import Condition, Repeats
from grid.cells import Cell, digest
from grid.executor import Job, Outcome
from grid.learning import draw_learning, mean_curve, summarise_learning
from grid.ledger import Curve, Entry, Ledger, Results, protocol_id
from grid.outcomes import Stamp, evaluation_entry
from grid.tables import Preset

PLACE = Condition(
    method="cmsc", pretraining="chapman", downstream="physionet2017", protocol="finetune", part="validation"
)
SEEDS = Repeats(seeds=(0, 1))
SHARES = [attrs.evolve(PLACE, label_fraction=share) for share in (0.25, 1.0)]
PRESET = Preset(name="less", printed_in="Figure 4", section="6.4", title="More", conditions=(), figure="less")


def curve(init: str, share: float, *scores: float) -> Curve:
    epochs = tuple(range(1, len(scores) + 1))
    return Curve(init=init, label_fraction=share, metric="auroc", epochs=epochs, scores=scores)


def entry(cell: Cell, *curves: Curve) -> Entry:
    return Entry(
        key=digest(cell.evaluation),
        protocol=protocol_id("finetune"),
        name="x",
        seed=cell.pretraining.seed,
        status="done",
        label_fractions=(0.25, 1.0),
        curves=curves,
    )


def kept(seed: int) -> Entry:
    """One seed's evaluation at both F: four curves."""
    cell = PLACE.cells(SEEDS)[seed]
    each = [curve(init, share, seed / 10, share) for init in ("cmsc", "random") for share in (0.25, 1.0)]
    return entry(cell, *each)


def test_the_mean_is_over_the_epochs_that_all_repetitions_have() -> None:
    """Later, only those that stopped late are left, and a mean of them would jump."""
    epochs, means = mean_curve([curve("a", 1, 0.2, 0.4, 0.6), curve("a", 1, 0.4, 0.8), curve("a", 1, 0.6, 0.6, 0.9)])
    assert epochs == [1, 2]
    assert means == pytest.approx([(0.2 + 0.4 + 0.6) / 3, (0.4 + 0.8 + 0.6) / 3])
    epochs, means = mean_curve([curve("a", 1, float("nan"), 0.4), curve("a", 1, 0.5, 0.6)])
    assert (epochs, means) == ([2], [0.5])


def test_methods_are_drawn_at_every_share_and_random_at_the_largest() -> None:
    """The paper's claim: CMSC with a quarter of the labels beside random initialisation with all of them."""
    lines = summarise_learning(SHARES, SEEDS, Results((kept(0), kept(1))))
    assert [(line.name, len(line.curves), line.without) for line in lines] == [
        ("cmsc, F = 0.25", 2, 0),
        ("cmsc, F = 1", 2, 0),
        ("random, F = 1", 2, 0),
    ]
    assert [found.scores for found in lines[0].curves] == [(0.0, 0.25), (0.1, 0.25)]
    assert {found.init for found in lines[2].curves} == {"random"}


def test_random_counts_once_a_repetition_whichever_methods_stand_beside_it() -> None:
    """Two methods of one seed have the same control."""
    both = [*SHARES, *(attrs.evolve(one, method="simclr") for one in SHARES)]
    entries = [
        entry(cell, curve(one.method, 1.0, 0.5), curve("random", 1.0, 0.4))
        for one in (both[1], both[3])
        for cell in one.cells(SEEDS)
    ]
    (random,) = (line for line in summarise_learning(both, SEEDS, Results(tuple(entries))) if line.init == "random")
    assert len(random.curves) == 2


def test_conditions_that_a_stand_in_makes_equal_are_drawn_once() -> None:
    """One data set may stand in for two of the paper: the same cells, under two printed names."""
    twice = [*SHARES, *(attrs.evolve(one, printed_pretraining="physionet2020") for one in SHARES)]
    lines = summarise_learning(twice, SEEDS, Results((kept(0), kept(1))))
    assert [line.name for line in lines] == ["cmsc, F = 0.25", "cmsc, F = 1", "random, F = 1"]


def test_evaluations_of_before_curves_were_kept_are_counted_and_said() -> None:
    """A figure of one seed must not pass for one of five."""
    old = entry(PLACE.cells(SEEDS)[1])
    (drawing,) = draw_learning(PRESET, summarise_learning(SHARES, SEEDS, Results((kept(0), old))))
    assert drawing.caption.endswith("3 of 6 fine-tunings are of before curves were kept, and are not drawn.")
    (drawing,) = draw_learning(PRESET, summarise_learning(SHARES, SEEDS, Results((old,))))
    assert "3 of 3 fine-tunings are of before curves were kept" in drawing.caption
    assert drawing.png.startswith(b"\x89PNG")
    (drawing,) = draw_learning(PRESET, summarise_learning(SHARES, SEEDS, Results((kept(0), kept(1)))))
    assert "before curves" not in drawing.caption
    assert drawing.svg.startswith(b"<?xml")
    assert draw_learning(PRESET, summarise_learning(SHARES, SEEDS, Results())) == ()


def test_the_same_numbers_give_the_same_figure() -> None:
    """Files are compared by their bytes when a grid is made again."""
    lines = summarise_learning(SHARES, SEEDS, Results((kept(0), kept(1))))
    assert draw_learning(PRESET, lines) == draw_learning(PRESET, lines)


def test_the_ledger_keeps_the_curves_of_a_report_and_reads_older_lines(tmp_path: Path) -> None:
    """A page can be made again after the folders are gone."""
    cell = PLACE.cells(SEEDS)[0]
    folder = tmp_path / "evaluated" / "x"
    folder.mkdir(parents=True)
    values = [
        {"epoch": n, "train_loss": 1.0, "validation_loss": 1.0, "validation_score": score}
        for n, score in ((1, 0.5), (2, None), (3, 1 / 3))
    ]
    about = {"protocol": "finetune", "init": "cmsc", "label_fraction": 0.25, "metric": "auroc", "values": values}
    (folder / "report.json").write_text(json.dumps({"curves": [about]}))
    stamp = Stamp(tmp_path, "abc", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    made = evaluation_entry([cell], Job(name="x", folder=folder, fresh=(), resume=()), Outcome(), stamp)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(made)
    line = json.loads(ledger.path.read_text())
    del line["curves"]  # as a line of before
    with open(ledger.path, "a") as file:
        file.write(json.dumps(line) + "\n")
    first, second = ledger.read().entries
    assert (first.status, first.curves[0].epochs) == ("done", (1, 2, 3))
    assert repr(first.curves[0].scores) == repr((0.5, float("nan"), 1 / 3))
    assert second.curves == ()
