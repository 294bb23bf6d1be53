"""Which scores a run reports."""

import attrs
import numpy as np
from fake_frames import TASK

from clocs_core import seeds
from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.records import Task
from clocs_core.contracts.result_offers import Metric
from clocs_core.evaluation.bootstrap import bootstrap
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.linear import by_record, linear, prior
from clocs_core.evaluation.permutation import permutation_p
from clocs_core.evaluation.scoring import Scoring, score_predictions
from clocs_core.settings.sections import ScoringSettings


def accuracy(probability, label, weight):
    return float(((probability.argmax(1) == label) * weight).sum() / weight.sum())


ACCURACY = Metric(name="accuracy", summary="Share of rows that are right.", score=accuracy)
SETTINGS = ScoringSettings(label_fraction=(0.5, 1.0), resamples=40, permutations=20)


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


def test_all_classifiers_are_scored_on_the_same_draws():
    """Two that are right on the same rows differ by nothing, whatever patients are drawn: the interval is a point."""
    label, patient = np.arange(60) % 3, np.arange(60) // 3
    rng = np.random.default_rng(1)
    decided = np.where(rng.random(60) < 0.6, label, (label + 1) % 3)
    sure, unsure = (np.eye(3)[decided] * height + 0.1 for height in (0.7, 0.2))
    predicted = {
        ("linear", init, 1.0): Predictions(rows, label, patient, patient)
        for init, rows in (("good", sure), ("random", unsure))
    }
    found = score_predictions(predicted, "random", Scoring(TASK, "tiny", (ACCURACY,), SETTINGS, 0))
    frames = found.comparisons[0]
    assert (frames.difference, frames.low, frames.high) == (0.0, 0.0, 0.0)
    assert found.scores[0].low < found.scores[0].value < found.scores[0].high


def test_draws_and_label_fractions_follow_from_the_split_seed_each_for_itself():
    """Sharing one seed, the patients that are drawn would depend on those whose labels are learnt from."""
    first, second = (Scoring(TASK, "tiny", (ACCURACY,), SETTINGS, seed) for seed in (0, 1))
    assert first.fraction_seed == seeds.derive(0, "label fraction")
    assert first.fraction_seed != second.fraction_seed
    low, other = (score_predictions(predicted_of(), "random", one).scores[0].low for one in (first, second))
    assert low != other
    rows = predicted_of()["finetune", "good", 0.5]
    expected = bootstrap(rows, ACCURACY, SETTINGS.resamples, seeds.derive(0, "bootstrap"))
    assert low == expected.low


def test_every_comparison_is_tested_at_its_own_level_with_swaps_of_their_own_seed():
    predicted = predicted_of(fractions=(1.0,))
    for rows in predicted.values():
        rows.record[:] = np.arange(60) // 3 * 2 + (np.arange(60) % 3 == 0)  # two recordings per patient
        rows.label[:] = rows.record % 3
    scoring = Scoring(TASK, "tiny", (ACCURACY,), attrs.evolve(SETTINGS, permutations=50), 4)
    found = score_predictions(predicted, "random", scoring).comparisons
    frames = [predicted["finetune", init, 1.0] for init in ("good", "random")]
    seed = seeds.derive(4, "permutation")
    expected = [permutation_p(*rows, ACCURACY, 50, seed) for rows in (frames, map(by_record, frames))]
    assert [one.p for one in found] == expected
    assert len(set(expected)) == 2
    none = attrs.evolve(scoring, settings=attrs.evolve(SETTINGS, permutations=0))
    assert [one.p for one in score_predictions(predicted, "random", none).comparisons] == [None, None]


def test_each_protocol_differs_from_its_own_control():
    predicted = predicted_of(("linear", "finetune"), fractions=(1.0,))
    found = score_predictions(predicted, "random", Scoring(TASK, "tiny", (ACCURACY,), SETTINGS, 0))
    value = {(s.protocol, s.init, s.level): s.value for s in found.scores}
    assert len({value[protocol, "random", "frame"] for protocol in ("linear", "finetune")}) == 2
    assert {(one.protocol, one.level): one.difference for one in found.comparisons} == {
        (protocol, level): value[protocol, "good", level] - value[protocol, "random", level]
        for protocol in ("linear", "finetune")
        for level in ("frame", "record")
    }


def test_a_recording_is_scored_by_the_mean_of_its_frames():
    """Two frames out of three are wrong, and the third is so sure that the mean is right."""
    probability = np.array([[0.4, 0.6, 0.0], [0.4, 0.6, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    rows = Predictions(probability, np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1]), np.array([5, 5, 5, 6]))
    found = score_predictions({("linear", "good", 1.0): rows}, "random", Scoring(TASK, "t", (ACCURACY,), SETTINGS, 0))
    assert {one.level: one.value for one in found.scores} == {"frame": 0.5, "record": 1.0}
