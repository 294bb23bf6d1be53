"""Evaluation, classifiers and comparison from Python."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from waves_in_memory import QUICK, SAMPLES, recordings

import clocs_core as clocs

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them


@pytest.fixture(scope="module")
def data() -> clocs.Recordings:
    return recordings()


@pytest.fixture(scope="module")
def run(data: clocs.Recordings) -> clocs.Run:
    return clocs.pretrain("cmsc", data, **QUICK)


@pytest.fixture(scope="module")
def tuned(run: clocs.Run, data: clocs.Recordings, tmp_path_factory: pytest.TempPathFactory) -> clocs.EvaluationResults:
    return clocs.evaluate(
        run.encoder,
        data,
        protocol="finetune",
        label_fraction=[0.5, 1.0],
        epochs=2,
        batch_size=16,
        learning_rate=0.01,
        resamples=20,
        out=tmp_path_factory.mktemp("evaluation") / "e",
        progress=False,
    )


def test_an_evaluation_has_scores_at_every_label_fraction_with_controls(tuned: clocs.EvaluationResults) -> None:
    found = {(row["protocol"], row["init"], row["label_fraction"]) for row in tuned.scores}
    assert found == {
        (protocol, init, fraction)
        for fraction in (0.5, 1.0)
        for protocol, init in (("finetune", "cmsc"), ("finetune", "random"), ("prior", "random"))
    }


def test_a_run_is_evaluated_by_what_evaluates_it_later(run: clocs.Run, data: clocs.Recordings) -> None:
    """Linear evaluation of the same encoder on the same data is the same number, from memory too."""
    later = clocs.evaluate(run, data, resamples=20, progress=False)
    assert later.record.scores == run.record.scores
    assert later.record.comparisons == run.record.comparisons


def test_an_untrained_encoder_is_evaluated_by_its_name(data: clocs.Recordings) -> None:
    found = clocs.evaluate(None, data, encoder="cnn", embedding_dim=8, resamples=20, device="cpu", progress=False)
    assert {row["init"] for row in found.scores} == {"random"}


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


def test_runs_are_compared_in_memory_and_from_folders(run: clocs.Run, data: clocs.Recordings, tmp_path: Path) -> None:
    other = clocs.pretrain("simclr", data, out=tmp_path / "other", **QUICK)
    found = clocs.compare([run, other], progress=False)
    assert "run.method" in found.settings["setting"]
    assert {row["b"] for row in found.differences} == {"B (simclr)"}
    assert clocs.compare([run, tmp_path / "other"], progress=False).record.differences == found.record.differences
    assert "<table>" in found._repr_html_()
    with pytest.raises(clocs.SettingsError, match="`runs` holds 1; give two or more"):
        clocs.compare([run])


def test_what_is_installed_is_listed() -> None:
    assert "cmsc" in clocs.methods()["name"]
    assert "demo" in clocs.datasets()["name"]
