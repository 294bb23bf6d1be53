"""The encoder of a run is scored beside its controls; where it cannot be, a note says why, and the run goes on."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import torch
from fake_frames import AGE, FRAME, PARTS, TASK, fake_cohort
from fake_offers import FlatOptions, TinyOptions, flat, hit_rate, tiny
from fake_recordings import CHANNELS, fake_entries
from finetune_oracle import DIM
from own_protocols import own_protocol

from clocs_core.contracts.records import Framing
from clocs_core.contracts.result_offers import Metric
from clocs_core.errors import DataError
from clocs_core.evaluation.classifiers import Watch
from clocs_core.evaluation.features import embed
from clocs_core.evaluation.linear import GRID, linear
from clocs_core.evaluation.own_encoder import score_own_encoder
from clocs_core.plan.data import Chosen
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.plan.pretrained import Pretrained
from clocs_core.settings.sections import DataSettings, EvaluationSettings, ScoringSettings
from clocs_core.train.build import draw_encoders
from clocs_core.train.normalise import leave

CPU = torch.device("cpu")
WATCH = Watch(clock=lambda: 0.0, tick=lambda done, total: None, epoch_done=pytest.fail, warn=pytest.fail)
HITS = Metric(name="hits", summary="Share of rows that are right.", score=hit_rate, tasks=("one_of",))
FEW = "Only 1 test patients are scored: bootstrap intervals over so few patients are too narrow to rely on."


def network(seed):
    """The encoder `flat` with weights that follow from the seed."""
    return draw_encoders(Chosen(flat(), FlatOptions()), 1, FRAME, DIM, seed)[0]


def plan_of(metrics=(HITS,), **scoring):
    """The evaluation of an encoder `method` whose weights are those of seed 7; the control's are those of seed 3."""
    encoder = Chosen(flat(), FlatOptions())
    settings = ScoringSettings(**{"label_fraction": (0.5, 1.0), "resamples": 20, "permutations": 20, **scoring})
    return EvaluationPlan(
        settings=EvaluationSettings(dataset="tiny", encoder="flat", embedding_dim=DIM, seed=3),
        data=DataSettings(channels=CHANNELS, normalise="none"),
        protocol=own_protocol("linear", settings),
        scoring=settings,
        framing=Framing(frame_samples=FRAME),
        dataset=Chosen(tiny(), TinyOptions()),
        encoder=Pretrained(init="method", encoder=encoder, embedding_dim=DIM, weights=network(7).state_dict()),
        task=TASK,
        metrics=metrics,
    )


def records_of(*parts):
    """The recordings of the patients of these parts."""
    return {entry.record for entry in fake_entries() if PARTS[entry.patient] in parts}


def score(folder, without=(), **plan):
    """Score on the tiny cohort; the recordings named in `without` have no label."""
    return score_own_encoder(plan_of(**plan), fake_cohort(folder, without), CPU, WATCH)


def test_encoder_control_and_prior_are_scored_at_every_label_fraction(tmp_path):
    found = score(tmp_path).evaluation
    assert [(one.protocol, one.init, one.label_fraction, one.level) for one in found.scores] == [
        (protocol, init, fraction, level)
        for fraction in (0.5, 1.0)
        for level in ("frame", "record")
        for protocol, init in (("linear", "method"), ("linear", "random"), ("prior", "random"))
    ]
    assert {(one.a, one.b, one.dataset) for one in found.comparisons} == {("method", "random", "tiny")}
    assert found.notes == (FEW,)


@pytest.mark.parametrize(("init", "seed"), [("method", 7), ("random", 3)])
def test_each_is_scored_with_its_own_weights(tmp_path, init, seed):
    """The control is the same architecture with weights of the run's seed, as it was before training."""
    scored = score(tmp_path)
    frames = scored.frames
    train, test = (
        embed(network(seed), frames.store, frames.parts[part], leave, WATCH.tick) for part in ("train", "test")
    )
    expected = linear(train, test, TASK)
    np.testing.assert_array_equal(scored.features[init].embedding, test.embedding)
    np.testing.assert_array_equal(scored.evaluation.predicted["linear", init, 1.0].probability, expected.probability)


@pytest.mark.parametrize(
    ("without", "metrics", "note"),
    [
        (("train", "validation", "test"), (HITS,), "There is no score: tiny has no labels."),
        (("train",), (HITS,), "There is no score: no training frame of tiny has a label for 'kind'."),
        (("test",), (HITS,), "There is no score: no test frame of tiny has a label for 'kind'."),
        ((), (), "There is no score: no installed plugin offers a metric for one_of tasks."),
        (
            (),
            (attrs.evolve(HITS, tasks=("any_of",)),),
            "There is no score: no installed plugin offers a metric for one_of tasks.",
        ),
    ],
    ids=["no labels", "none to train on", "none to score", "no metric", "no metric that fits"],
)
def test_where_there_can_be_no_score_a_note_says_why(tmp_path, without, metrics, note):
    """Training took hours: its embeddings and distances, which need no label, are kept."""
    scored = score(tmp_path, records_of(*without), metrics=metrics)
    assert scored.evaluation.scores == scored.evaluation.comparisons == ()
    assert scored.evaluation.notes == (note,)
    assert dict(scored.evaluation.predicted) == {}
    assert {init: rows.embedding.shape for init, rows in scored.features.items()} == {
        "method": (24, DIM),
        "random": (24, DIM),
    }
    assert set(scored.distances) == {"method", "random"}
    assert scored.frames.counts == {"train": 95, "validation": 24, "test": 24}


def test_too_few_labels_for_two_classes_cost_a_note_not_the_run(tmp_path):
    """One frame has one class; the other label fractions are worth keeping, and the note is said once."""
    found = score(tmp_path, label_fraction=(0.001, 1.0)).evaluation
    assert {one.label_fraction for one in found.scores} == {1.0}
    assert found.notes[0] == FEW
    (missing,) = found.notes[1:]
    assert missing.startswith("There is no score at F = 0.001: The labelled training frames all have one class (")


def test_where_every_label_is_of_one_class_there_is_no_score_at_any_fraction(tmp_path):
    only_p0 = records_of("train") - {"r0-0", "r0-1"}
    found = score(tmp_path, only_p0).evaluation
    assert found.scores == ()
    assert found.notes == tuple(
        f"There is no score at F = {fraction}: The labelled training frames all have one class (a); a classifier needs "
        "two."
        for fraction in ("0.5", "1")
    )


def test_embeddings_are_of_all_scored_frames_and_scores_of_the_labelled_ones(tmp_path):
    scored = score(tmp_path, {"r5-0"})
    assert len(scored.features["method"]) == 24
    assert len(scored.evaluation.predicted["linear", "method", 1.0].label) == 12


def test_another_part_can_be_scored(tmp_path):
    scored = score(tmp_path, part="validation")
    (patient,) = set(scored.features["method"].patient.tolist())
    assert scored.frames.store.patients[patient] == "p4"


def test_a_part_without_a_frame_is_refused_with_a_way_out(tmp_path):
    cohort = fake_cohort(tmp_path)
    parts = {**cohort.split.parts, "p5": "train"}
    emptied = attrs.evolve(cohort, split=attrs.evolve(cohort.split, parts=parts))
    with pytest.raises(
        DataError, match=r"No recording of the test patients has a frame; .* \(`frame_samples=\.\.\.`\)"
    ):
        score_own_encoder(plan_of(), emptied, CPU, WATCH)


def test_a_number_is_scored_beside_its_controls_and_less_error_is_better(tmp_path):
    error = Metric(name="error", summary="s", tasks=("number",), better="lower", score=mean_error)
    plan = attrs.evolve(plan_of(metrics=(HITS, error), label_fraction=(1.0,)), task=AGE)
    found = score_own_encoder(plan, fake_cohort(tmp_path, task=AGE), CPU, WATCH).evaluation
    assert {(one.protocol, one.init, one.metric) for one in found.scores} == {
        ("linear", "method", "error"), ("linear", "random", "error"), ("prior", "random", "error")
    }  # fmt: skip
    assert {one.better for one in found.comparisons} == {"lower"}
    prior = found.predicted["prior", "random", 1.0]
    train = [60.0, 60.0, 67.5, 67.5, 75.0, 75.0, 60.0, 60.0]
    assert prior.probability[0, 0] == pytest.approx(np.mean(train), abs=1.0)
    assert prior.label.dtype == np.float32


def mean_error(value, label, weight):
    return float(np.average(np.abs(value[:, 0] - label), weights=weight)) if weight.sum() else float("nan")


def test_c_is_chosen_on_validation_frames_and_the_notes_say_so(tmp_path):
    found = score(tmp_path / "a", C="auto", label_fraction=(1.0,)).evaluation
    assert [note.partition(" = 1: C = ")[0] for note in found.notes if "C = " in note] == [
        "Linear evaluation of method, F",
        "Linear evaluation of random, F",
    ]
    without = score(tmp_path / "b", records_of("validation"), C="auto").evaluation
    assert without.notes == ("There is no score: no validation frame of tiny has a label for 'kind'.",)


def test_c_of_a_number_is_chosen_by_the_smallest_error(tmp_path):
    """A metric whose lower scores are better would otherwise choose the worst C."""
    error = Metric(name="error", summary="s", tasks=("number",), better="lower", score=mean_error)
    plan = attrs.evolve(plan_of(metrics=(error,), label_fraction=(1.0,), C="auto"), task=AGE)
    cohort = fake_cohort(tmp_path, task=AGE)
    notes = score_own_encoder(plan, cohort, CPU, WATCH).evaluation.notes
    (mine,) = [note for note in notes if note.startswith("Linear evaluation of method")]
    found = float(mine.partition("(error ")[2].split()[0])
    for c in GRID:
        given = attrs.evolve(plan, scoring=attrs.evolve(plan.scoring, C=c, part="validation"))
        (score,) = [
            one.value
            for one in score_own_encoder(given, cohort, CPU, WATCH).evaluation.scores
            if (one.protocol, one.init, one.level) == ("linear", "method", "frame")
        ]
        assert found <= score + 5e-4
