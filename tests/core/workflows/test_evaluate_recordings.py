"""`clocs evaluate --protocol linear-record`: the linear model has one vector per recording, the mean of its frames'."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fake_plugins import points
from fake_runs import evaluate_run, make_run
from sklearn.linear_model import LogisticRegression

import clocs_core as clocs
from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.cli import main

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

ONE_VECTOR = ("--protocol", "linear-record")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def evaluated(run):
    return EvaluationFolder(evaluate_run(run, *ONE_VECTOR))


def test_recordings_alone_are_scored_and_learnt_from(evaluated):
    report = evaluated.read_report()
    assert {one.level for one in report.scores} == {"record"}
    assert {(one.protocol, one.init) for one in report.scores} == {
        ("linear-record", "together"),
        ("linear-record", "random"),
        ("prior", "random"),
    }
    with np.load(evaluated.predictions, allow_pickle=False) as file:
        records = file["record"].tolist()
        assert len(file["probability/linear-record/together/1"]) == len(records) == len(set(records))
    assert "means of its representations of each recording" in report.how
    assert "training recordings" in report.how


def test_c_is_chosen_on_validation_recordings(run):
    report = EvaluationFolder(evaluate_run(run, *ONE_VECTOR, "--C", "auto")).read_report()
    assert any("validation recordings" in note for note in report.notes)
    assert {cell.C for cell in report.cells if cell.protocol == "linear-record"} <= {0.001, 0.01, 0.1, 1, 10, 100, None}


def test_it_trains_no_network(run, capsys):
    assert main(["evaluate", str(run), *ONE_VECTOR, "--epochs", "3"], points()) == 2
    assert "Linear evaluation trains no network" in capsys.readouterr().err


def test_it_is_logistic_regression_on_mean_embeddings(tmp_path):
    """From raw arrays: embed each frame, average by recording, and let scikit-learn fit."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 2)
    label = np.where(patient % 2 == 0, "a", "b")
    x = rng.normal(size=(120, 1, 1200)) * np.where(label == "a", 1.0, 1.5)[:, None, None]
    data = clocs.Recordings(x, patients=patient, labels=label, sampling_rate=100, channels=["II"])
    quick = {"epochs": 1, "batch_size": 16, "frame_samples": 400, "normalise": "none", "progress": False}
    kept = clocs.pretrain("cmsc", data, out=tmp_path / "run", **quick)
    made = clocs.evaluate(kept, data, protocol="linear-record", out=tmp_path / "made", progress=False)

    split = json.loads((tmp_path / "made" / "split.json").read_text())["patients"]
    mean = np.stack([kept.encoder.embed(one, sampling_rate=100, channels=["II"]).embedding.mean((0, 1)) for one in x])
    train = np.isin(patient.astype(str), split["train"])
    test = np.isin(patient.astype(str), split["test"])
    center, scale = mean[train].mean(0), np.where(mean[train].std(0) == 0, 1, mean[train].std(0))
    fitted = LogisticRegression(tol=1e-10, max_iter=10_000).fit((mean[train] - center) / scale, label[train])
    expected = fitted.predict_proba((mean[test] - center) / scale)
    found = made.predictions.predicted["linear-record", "cmsc", 1.0].probability
    np.testing.assert_allclose(np.sort(found[:, 0]), np.sort(expected[:, 0]), atol=1e-4)
