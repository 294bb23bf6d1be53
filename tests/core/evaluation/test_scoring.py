"""Which scores a run reports."""

import attrs
import numpy as np
from fake_frames import TASK

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.offers import Metric
from clocs_core.contracts.records import Task
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.linear import linear, prior
from clocs_core.evaluation.scoring import Scoring, score_predictions
from clocs_core.settings.sections import ScoringSettings


def accuracy(probability, label, weight):
    return float(((probability.argmax(1) == label) * weight).sum() / weight.sum())


ACCURACY = Metric(name="accuracy", summary="Share of rows that are right.", score=accuracy)
SETTINGS = ScoringSettings(label_fraction=(0.5, 1.0), resamples=40)


def features(seed, signal, n=120):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, n)
    z = (signal * np.eye(3)[label] + rng.normal(0, 0.5, (n, 3))).astype(np.float32)
    return Features(z, label, np.arange(n) // 3, np.arange(n) // 3)


def evaluate(task=TASK, metrics=(ACCURACY,)):
    """Linear models of two encoders at both label fractions, and the class prior, scored."""
    inits = {"good": (features(0, 3.0), features(1, 3.0)), "random": (features(0, 0.3), features(1, 0.3))}
    predicted = {}
    for fraction in SETTINGS.label_fraction:
        rows = np.arange(int(120 * fraction))
        for init, (train, test) in inits.items():
            predicted["linear", init, fraction] = linear(train.take(rows), test, task)
        predicted["prior", "random", fraction] = prior(train.take(rows), test, task)
    return score_predictions(predicted, "random", Scoring(task, "tiny", metrics, SETTINGS, 0))


def test_every_fraction_and_level_has_the_method_and_both_controls():
    """Controls that cannot be skipped: the same encoder untrained, and the class prior."""
    found = evaluate()
    keys = [(s.protocol, s.init, s.label_fraction, s.level) for s in found.scores]
    assert keys == [
        (protocol, init, fraction, level)
        for fraction in (0.5, 1.0)
        for level in ("frame", "record")
        for protocol, init in (("linear", "good"), ("linear", "random"), ("prior", "random"))
    ]
    assert all(score.low <= score.value <= score.high for score in found.scores)


def test_the_method_is_compared_with_the_untrained_encoder_on_the_same_patients():
    found = evaluate()
    first = found.comparisons[0]
    values = {(s.protocol, s.init): s.value for s in found.scores if s.label_fraction == 0.5 and s.level == "frame"}
    assert (first.a, first.b, first.level, first.label_fraction) == ("good", "random", "frame", 0.5)
    assert first.difference == values["linear", "good"] - values["linear", "random"]
    assert first.low > 0


def test_a_task_with_a_label_per_frame_has_no_scores_by_record():
    task = Task("kind", classes=TASK.classes, per="frame")
    assert {score.level for score in evaluate(task).scores} == {"frame"}


def test_a_task_that_no_metric_fits_has_a_reason_instead_of_a_score():
    why = Scoring(TASK, "tiny", (attrs.evolve(ACCURACY, tasks=("any_of",)),), SETTINGS, 0).why_no_metric()
    assert why == "no installed plugin offers a metric for one_of tasks"
    assert Scoring(TASK, "tiny", (ACCURACY,), SETTINGS, 0).why_no_metric() == ""


def predicted_of(protocols=("finetune",), inits=("good", "random"), fractions=(0.5, 1.0)):
    label, patient = np.arange(60) % 3, np.arange(60) // 3
    rng = np.random.default_rng(0)
    return {
        (protocol, init, fraction): Predictions(rng.random((60, 3)), label, patient, patient)
        for fraction in fractions
        for protocol in protocols
        for init in inits
    }


def test_any_protocol_is_scored_by_the_same_path():
    """Frame and record, method and control, at every share of labels; and ticks on the way, for it may take a while."""
    predicted, ticks = predicted_of(), []
    scoring = Scoring(TASK, "tiny", (ACCURACY,), SETTINGS, 0)
    found = score_predictions(predicted, "random", scoring, lambda done, total: ticks.append((done, total)))
    assert [(s.protocol, s.init, s.label_fraction, s.level) for s in found.scores] == [
        ("finetune", init, fraction, level)
        for fraction in (0.5, 1.0)
        for level in ("frame", "record")
        for init in ("good", "random")
    ]
    assert ticks == [(1, 4), (2, 4), (3, 4), (4, 4)]
    for one in found.comparisons:
        values = {
            s.init: s.value for s in found.scores if (s.level, s.label_fraction) == (one.level, one.label_fraction)
        }
        assert one.difference == values["good"] - values["random"]
        assert one.low <= one.difference <= one.high


def test_a_protocol_is_compared_with_its_own_control_only():
    """Fine-tuning a method against a frozen random encoder would flatter it."""
    predicted = predicted_of(("linear", "finetune"), fractions=(1.0,))
    del predicted["linear", "random", 1.0]
    found = score_predictions(predicted, "random", Scoring(TASK, "tiny", (ACCURACY,), SETTINGS, 0))
    assert {one.protocol for one in found.comparisons} == {"finetune"}


def test_nothing_predicted_is_no_score_and_no_error():
    assert score_predictions({}, "random", Scoring(TASK, "tiny", (ACCURACY,), SETTINGS, 0)).scores == ()
