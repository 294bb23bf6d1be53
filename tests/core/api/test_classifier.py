"""A fine-tuned classifier, applied to a signal in Python."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from fake_recordings import SAMPLES

import clocs_core as clocs

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them


def test_a_classifier_predicts_a_signal(tuned: clocs.EvaluationResults, tmp_path: Path) -> None:
    model = clocs.load_classifier(tuned.path, label_fraction=1.0)
    assert model.classes == ("fast", "slow")
    signal = np.sin(2 * np.pi * np.arange(SAMPLES) / 100)
    found = model.predict(signal, sampling_rate=100)
    assert found.frame_probability.shape == (2, 1, 2)
    np.testing.assert_allclose(found.probability, found.frame_probability.mean(axis=(0, 1)))
    np.testing.assert_allclose(found.probability.sum(), 1.0)
    assert found.label == model.classes[int(found.probability.argmax())]
    assert found.table()["class"][0] == found.label
    again = pickle.loads(pickle.dumps(model)).predict(signal, sampling_rate=100, channels="II")
    np.testing.assert_array_equal(again.probability, found.probability)


def test_a_signal_that_does_not_fit_names_the_argument(tuned: clocs.EvaluationResults) -> None:
    model = clocs.load_classifier(tuned.path, label_fraction=1.0)
    with pytest.raises(clocs.DataError, match=r"has 3 channels .* name every row with `channels=\[\.\.\.\]`"):
        model.predict(np.zeros((3, SAMPLES)), sampling_rate=100)
    with pytest.raises(clocs.SettingsError, match="`sampling_rate` must be a positive number of Hz, got -1"):
        model.predict(np.zeros((1, SAMPLES)), sampling_rate=-1)


def test_a_number_is_fine_tuned_kept_and_predicted_in_its_unit(
    run: clocs.Run, data: clocs.Recordings, tmp_path: Path
) -> None:
    """The file keeps the mean and the spread of the labels, or a prediction would be in standard deviations."""
    ages = [40.0 + 10 * (int(patient) % 3) for patient in range(len(data))]
    numbers = clocs.Recordings(
        data._samples, patients=data.patients, labels=ages, sampling_rate=100, channels=data.channels,
        unit=data.unit, numbers=True, label_unit="years",
    )  # fmt: skip
    quick = {"epochs": 1, "batch_size": 16, "resamples": 20, "progress": False}
    found = clocs.evaluate(run.encoder, numbers, protocol="finetune", out=tmp_path / "e", **quick)
    assert {one.metric for one in found.record.scores} == {"mae", "r2", "spearman"}
    model = clocs.load_classifier(tmp_path / "e")
    predicted = model.predict(np.asarray(data._samples[0]), sampling_rate=100)
    assert predicted.label == predicted.probability[0]
    assert 30 < predicted.label < 70
    assert predicted.table()["value"][0] == predicted.label
    assert clocs.load_classifier(tmp_path / "e").about.task == clocs.Task("label", kind="number", unit="years")
