"""Results for clinicians: of every class, with the threshold of validation patients; a word for whatever is missing."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
import torch
from fake_frames import AGE, ANY_OF, TASK, fake_cohort

from clocs_core.artifacts.predictions import Predictions
from clocs_core.artifacts.reports import CellSummary
from clocs_core.evaluation.bootstrap import draw_weights_on
from clocs_core.evaluation.clinical import _note, choose_thresholds, clinical_results, draw_estimates
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.labelled_frames import list_labelled_frames
from clocs_core.evaluation.linear import linear, linear_with_best_c
from clocs_core.evaluation.ranking import Ranking
from clocs_core.evaluation.scoring import Scoring
from clocs_core.settings.sections import ScoringSettings
from clocs_core.train.normalise import leave

MINE, CONTROL, FEW = ("linear", "mine", 1.0), ("linear", "random", 1.0), ("linear", "mine", 0.5)
PATIENTS = [f"p{n}" for n in range(20)]
RECORDS = [f"r{n}" for n in range(40)]


def scoring(task=TASK, **settings):
    return Scoring(task, "d", (), ScoringSettings(**{"resamples": 30, **settings}), 0)


def predictions(label, seed=0, strength=2.0):
    """Two frames of each recording, two recordings of each patient."""
    rng = np.random.default_rng(seed)
    label = np.asarray(label)
    truth = label if label.ndim == 2 else np.eye(3)[label]
    logits = rng.normal(strength * truth, 1.0)
    odds = np.exp(logits)
    probability = 1 / (1 + np.exp(-logits)) if label.ndim == 2 else odds / odds.sum(1, keepdims=True)
    record = np.repeat(np.arange(len(label)), 2)
    return Predictions(np.repeat(probability, 2, axis=0), label[record], record // 2, record)


def results(tmp_path, rows, task=TASK, thresholds=(0.3, 0.4, 0.5), without=(), **settings):
    cohort = fake_cohort(tmp_path, without, task)
    frames = list_labelled_frames(cohort, False, leave, torch.device("cpu"))
    predicted = {FEW: rows, MINE: rows, CONTROL: rows, ("prior", "random", 1.0): rows}
    summaries = {
        key: CellSummary(protocol=key[0], init=key[1], label_fraction=key[2], thresholds=thresholds)
        for key in predicted
    }
    return clinical_results(predicted, summaries, frames, cohort, scoring(task, **settings), (PATIENTS, RECORDS))


LABELS = np.arange(40) % 3


def test_every_class_has_numbers_intervals_support_and_counts(tmp_path):
    rows = predictions(LABELS)
    found = results(tmp_path, rows)
    assert (found.init, found.label_fraction, found.level, found.rows, found.patients) == (
        "mine",
        1.0,
        "record",
        40,
        20,
    )
    assert [(one.init, one.name) for one in found.classes] == [(i, c) for i in ("mine", "random") for c in "abc"]
    first = found.classes[0]
    said, there = rows.probability[::2, 0] >= 0.3, LABELS == 0
    assert (first.true_positives, first.false_negatives) == ((said & there).sum(), (~said & there).sum())
    assert (first.false_positives, first.true_negatives) == ((said & ~there).sum(), (~said & ~there).sum())
    assert first.sensitivity.value == pytest.approx(said[there].mean())
    assert first.specificity.value == pytest.approx((~said)[~there].mean())
    assert (first.rows, first.patients) == (14, len({n // 2 for n in np.flatnonzero(there)}))
    for one in found.classes:
        for estimate in (one.auroc, one.auprc, one.sensitivity, one.specificity):
            assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert found.classes[0].roc
    assert not found.classes[3].roc
    assert np.array(found.confusion).sum(1).tolist() == [14, 13, 13]


def test_a_prediction_on_the_threshold_counts_as_positive_everywhere(tmp_path):
    """Thresholds are predictions of validation patients, so ties are common; counts and sensitivity must agree."""
    rows = predictions(LABELS)
    on = tuple(
        float(rows.probability[2 * place, place]) for place in range(3)
    )  # recordings 0, 1, 2 have classes 0, 1, 2
    for one, threshold in zip(results(tmp_path, rows, thresholds=on).classes, on * 2, strict=True):
        place = "abc".index(one.name)
        there = place == LABELS
        said = rows.probability[::2, place] >= threshold
        assert said[place]
        assert one.true_positives == (said & there).sum()
        assert one.sensitivity.value == pytest.approx(one.true_positives / there.sum())
        assert one.specificity.value == pytest.approx(one.true_negatives / (~there).sum())


def test_the_areas_are_those_of_the_installed_metrics(tmp_path):
    """One definition on the page: the mean over classes is the score in the table above it."""
    from clocs_core.plugins.session import installed_session

    rows = predictions(LABELS)
    found = results(tmp_path, rows).classes[:3]
    metrics = installed_session().catalogue.metrics
    for name in ("auroc", "auprc"):
        value = metrics.get(name).offer.score(rows.probability[::2], LABELS, np.ones(40))
        assert np.mean([getattr(one, name).value for one in found]) == pytest.approx(value, abs=1e-12)


def test_of_any_classes_each_is_by_itself_and_there_is_no_matrix(tmp_path):
    label = np.random.default_rng(0).integers(0, 2, (40, 3))
    found = results(tmp_path, predictions(label), ANY_OF)
    assert found.confusion == ()
    assert [one.rows for one in found.classes[:3]] == label.sum(0).tolist()


def test_a_class_that_nobody_has_says_so(tmp_path):
    """A row of n/a without a word would look like a fault of the program."""
    found = results(tmp_path, predictions(np.arange(40) % 2))
    absent = found.classes[2]
    assert math.isnan(absent.auroc.value)
    assert math.isnan(absent.sensitivity.value)
    assert absent.specificity.value >= 0
    assert "no test recording has it, so there is no AUROC, AUPRC or sensitivity" in absent.note


def test_few_patients_of_a_class_are_told(tmp_path):
    assert (
        "only 1 test patient has it: intervals say little"
        in results(tmp_path, predictions([2, *np.arange(39) % 2])).classes[2].note
    )


def test_a_missing_threshold_says_why(tmp_path):
    found = results(tmp_path, predictions(LABELS), thresholds=(), without=("r4-0", "r4-1"))
    for one in found.classes:
        assert "no validation recording has a label, so there is no threshold" in one.note
        assert math.isnan(one.threshold)
        assert math.isnan(one.sensitivity.value)
        assert one.true_positives == one.true_negatives == 0
    some = np.array([True, False])
    assert _note(some, 9, some, False, scoring()) == (
        "the classifier predicted no validation patients, so there is no threshold"
    )
    assert _note(some, 9, some, True, scoring()) == ""


def test_a_class_that_no_validation_patient_has_says_so(tmp_path):
    notes = [one.note for one in results(tmp_path, predictions(LABELS), thresholds=(math.nan,) * 3).classes]
    assert any("no validation recording has it, so there is no threshold" in note for note in notes)


def test_thresholds_are_chosen_on_recordings():
    label = np.array([0, 1, 2, 0])
    rows = predictions(label, strength=5.0)
    assert choose_thresholds(None, scoring()) == ()
    first = choose_thresholds(rows, scoring())[0]
    said = rows.probability[::2, 0] >= first
    assert said.tolist() == (label == 0).tolist()


def test_a_linear_model_predicts_validation_rows_and_its_scores_stay(tmp_path):
    """Thresholds need them; the predictions of the test rows must not change by a bit."""
    rng = np.random.default_rng(0)
    train, held_out, test = (
        Features(rng.normal(size=(n, 4)).astype(np.float32), np.arange(n) % 3, np.arange(n), np.arange(n))
        for n in (60, 20, 25)
    )
    alone, beside = linear(train, test, TASK), linear(train, test, TASK, validation=held_out)
    assert np.array_equal(alone.probability, beside.probability)
    assert alone.validation is None
    assert np.array_equal(beside.validation.probability, linear(train, held_out, TASK).probability)
    best, c, _ = linear_with_best_c(train, held_out, test, TASK, lambda p, y, w: float((p.argmax(1) == y).mean()))
    assert best.validation.probability == pytest.approx(linear(train, held_out, TASK, c=c).probability, abs=1e-6)
    torn = attrs.evolve(held_out, embedding=np.full((20, 4), np.nan, np.float32))
    assert linear(train, test, TASK, validation=torn).validation is None


def test_a_number_has_a_bias_an_error_and_limits(tmp_path):
    true = np.repeat(np.arange(40, 80, dtype=np.float32), 2)
    record = np.repeat(np.arange(40), 2)
    off = np.where(record % 2, 3.0, -1.0)
    rows = Predictions((true + off)[:, None], true, record // 2, record)
    found = results(tmp_path, rows, AGE, thresholds=())
    mine, control = found.numbers
    assert (mine.bias.value, mine.error.value) == (1.0, 2.0)
    assert mine.bias.low <= 1.0 <= mine.bias.high
    assert mine.limits_high - 1 == pytest.approx(1.96 * np.std(off[::2], ddof=1))
    assert len(mine.true) == 40
    assert not control.true
    assert found.worst[0].error == 3.0
    assert found.unit == "years"
    assert not found.classes


def test_without_predictions_there_is_nothing(tmp_path):
    cohort = fake_cohort(tmp_path)
    frames = list_labelled_frames(cohort, False, leave, torch.device("cpu"))
    assert clinical_results({}, {}, frames, cohort, scoring(), ((), ())) is None


def on_device(device):
    """Draws of the estimates of two classes, and those on the CPU."""
    rng = np.random.default_rng(0)
    truth, patient = rng.random((50, 2)) < 0.4, rng.integers(0, 12, 50)
    ranked = [Ranking.of(np.round(rng.random(50) + column, 1), column) for column in truth.T]
    how = ranked, (0.8, math.nan), patient, scoring(resamples=30)
    return draw_estimates(*how, device, 1.0), draw_estimates(*how, torch.device("cpu"), 1.0)


def test_draws_on_a_device_are_those_on_the_cpu(monkeypatch):
    """The tensors of a GPU, here on the CPU."""
    weights = draw_weights_on
    monkeypatch.setattr(
        "clocs_core.evaluation.clinical.draw_weights_on", lambda _, *how: weights(torch.device("cpu"), *how)
    )
    for found, expected in zip(*on_device(torch.device("cuda")), strict=True):
        assert found.shape == (30, 4)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.cuda
def test_draws_on_a_gpu_are_those_on_the_cpu():
    for found, expected in zip(*on_device(torch.device("cuda")), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
