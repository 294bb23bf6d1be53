"""`clocs evaluate --protocol patient-identification`: beside the untrained encoder and chance, and without labels."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fake_plugins import points
from fake_recordings import RATE, SAMPLES
from fake_runs import QUICK, evaluate_run, make_run

import clocs_core as clocs
from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.cli import main
from clocs_core.errors import DataError

IDENTIFY = ("--protocol", "patient-identification")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def evaluated(run):
    return EvaluationFolder(evaluate_run(run, *IDENTIFY))


def test_the_encoder_stands_beside_the_untrained_one_and_chance(evaluated):
    """Data set `many` has three recordings of each patient: the first is in the gallery, two are probes."""
    report = evaluated.read_report()
    who = [("patient-identification", "together"), ("patient-identification", "random"), ("chance", "chance")]
    keys = [(one.protocol, one.init, one.metric, one.level) for one in report.scores]
    assert keys == [(*one, metric, "record") for metric in ("recall_at_1", "recall_at_5") for one in who]
    patients = report.split.patients["test"]
    chance = {one.metric: one.value for one in report.scores if one.init == "chance"}
    assert chance == {"recall_at_1": 1 / patients, "recall_at_5": min(1, 5 / patients)}
    assert [(one.a, one.b, one.metric) for one in report.comparisons] == [
        ("together", "random", "recall_at_1"),
        ("together", "random", "recall_at_5"),
    ]
    assert all(one.p is not None for one in report.comparisons)
    assert report.clinical is None
    assert "No label is used." in report.how


def test_every_probe_is_in_the_file_of_predictions(evaluated):
    with np.load(evaluated.predictions, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    report = evaluated.read_report()
    assert held["classes"].tolist() == ["recall_at_1", "recall_at_5"]
    assert len(held["record"]) == 2 * report.split.patients["test"]
    assert not [name for name in held["record"] if name.endswith("-0")]  # the first recordings are the gallery
    hits = held["probability/patient-identification/together/1"]
    assert hits[:, 0].mean() == pytest.approx(report.scores[0].value)


def test_two_such_evaluations_can_be_compared(run, evaluated, capsys):
    other = evaluate_run(run, *IDENTIFY, "--seed", "5")
    capsys.readouterr()
    assert main(["compare", str(evaluated.path), str(other), "--json"], points()) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert {one["metric"] for one in scores} == {"recall_at_1"}
    assert [one["weights"] for one in scores if one["letter"] == "A"] == ["own", "random", "chance"]


@pytest.mark.parametrize("given", [("--label-fraction", "0.5"), ("-o", "metrics=hits"), ("--fraction-of", "patients")])
def test_settings_of_labels_are_refused(run, given, capsys):
    words = ["evaluate", str(run), *IDENTIFY, "--data-root", str(run.parent / "data"), *QUICK, *given]
    assert main(words, points()) == 2
    assert "Patient identification uses no labels, so" in " ".join(capsys.readouterr().err.split())


def unlabelled(visits):
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(12), visits)
    x = np.sin(np.arange(SAMPLES) * (1 + people[:, None, None]) / 30) + 0.1 * rng.normal(size=(len(people), 1, SAMPLES))
    return clocs.Recordings(x, patients=people, sampling_rate=RATE, channels=["II"])


def test_recordings_need_no_labels_but_two_of_a_patient():
    asked = {"encoder": "cnn", "embedding_dim": 8, "resamples": 20, "permutations": 20, "device": "cpu"}
    asked |= {"protocol": "patient-identification", "progress": False, "frame_samples": 400}
    found = clocs.evaluate(None, unlabelled(2), **asked)
    assert {one.init for one in found.record.scores} == {"random", "chance"}
    with pytest.raises(DataError, match=r"0 of the .* test patients of 'recordings' have several"):
        clocs.evaluate(None, unlabelled(1), **asked)
