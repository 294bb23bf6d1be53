"""What Weights & Biases and MLflow are told of a run, by stand-ins for both; and that nobody is told unasked."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest
from fake_events import epoch_done, run_at, run_done

import clocs_plugins.tracking as plugin
from clocs_core import Unavailable
from clocs_plugins.tracking.choice import _mlflow, _wandb, trackers
from clocs_plugins.tracking.numbers import epoch_of, scores_of, settings_of


@pytest.fixture(autouse=True)
def nothing_is_asked_for(monkeypatch):
    for name in ("WANDB_PROJECT", "WANDB_MODE", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    _wandb.cache_clear()
    _mlflow.cache_clear()


class FakeWandb(ModuleType):
    """Writes down what it is told."""

    def __init__(self):
        super().__init__("wandb")
        self.told = []

    def init(self, **given):
        self.told.append(("init", given))
        summary = SimpleNamespace(update=lambda held: self.told.append(("summary", held)))
        return SimpleNamespace(
            log=lambda held, step: self.told.append(("log", step, held)),
            summary=summary,
            finish=lambda: self.told.append(("finish",)),
        )


class FakeMlflow(ModuleType):
    """Writes down what it is told, in the place of one client."""

    def __init__(self):
        super().__init__("mlflow")
        self.told, self.experiments = [], {}
        self.entities = ModuleType("mlflow.entities")
        self.entities.Param = lambda key, value: (key, value)
        self.entities.Metric = lambda key, value, when, step: (key, value, step)

    def MlflowClient(self):
        return self

    def get_experiment_by_name(self, name):
        return self.experiments.get(name)

    def create_experiment(self, name):
        self.experiments[name] = SimpleNamespace(experiment_id=name)
        return name

    def create_run(self, experiment, run_name):
        self.told.append(("create", experiment, run_name))
        return SimpleNamespace(info=SimpleNamespace(run_id="id-1"))

    def log_batch(self, run, metrics=(), params=()):
        self.told.append((run, dict(params), list(metrics)))

    def set_terminated(self, run):
        self.told.append(("end", run))


def tell(folder):
    run = run_at(folder, data={"root": "/home/me/secret", "channels": ["II"]})
    plugin.clocs_run_started(run)
    plugin.clocs_epoch_done(run, epoch_done(1, 4.0, [5.0], validation_loss=float("nan")))
    plugin.clocs_run_done(run, run_done())


def test_nobody_is_told_unasked(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", fake := FakeWandb())
    monkeypatch.setitem(sys.modules, "mlflow", other := FakeMlflow())
    tell(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "disabled")
    tell(tmp_path)
    assert fake.told == other.told == []
    assert not list(tmp_path.iterdir())


def test_paths_of_the_machine_are_not_sent(tmp_path):
    run = run_at(tmp_path, data={"root": "/home/me/secret", "data_root": "/data", "channels": ["II"]})
    assert settings_of(run) == {
        "method": "m",
        "dataset": "d",
        "run.seed": 4,
        "train.epochs": 3,
        "train.learning_rate": 1e-4,
        "loss.name": "a|b",
        "data.channels": "['II']",
    }


def test_what_is_not_defined_is_left_out():
    assert "loss/validation" not in epoch_of(epoch_done(1, 4.0, [5.0], validation_loss=float("nan")))


def test_trackers_get_every_curve_that_tensorboard_has():
    epoch = epoch_done(1, 4.0, [5.0], components={"pull": 0.5, "push": float("nan")})
    expected = {name: value for name, value in epoch.scalars().items() if name != "components/push"}
    assert epoch_of(epoch) == expected | {"seconds": 0.1}
    assert {"components/pull", "health/loss_over_log_batch"} <= set(expected)


def test_names_of_components_are_those_that_mlflow_takes():
    """MLflow refuses all metrics of a call where one has a name with other characters."""
    named = epoch_of(epoch_done(1, 4.0, [5.0], components={"z₁|z₂ (cos)": 0.5, "a/b.c-d": 1.0}))
    assert {"components/z__z_ _cos_", "components/a/b.c-d"} <= set(named)


def test_weights_and_biases_gets_settings_epochs_and_scores(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", fake := FakeWandb())
    monkeypatch.setenv("WANDB_MODE", "offline")
    tell(tmp_path)
    (_, begun), (_, step, logged), (_, summary), end = fake.told
    assert (begun["name"], begun["resume"], begun["dir"]) == (tmp_path.name, "allow", str(tmp_path))
    assert "secret" not in str(begun)
    assert (step, logged["loss/train"]) == (1, 4.0)
    assert summary["score/m/linear/auroc/frame/labels_1"] == 0.75
    assert summary["score/class_prior/prior/auroc/frame/labels_1"] == 0.5
    assert end == ("finish",)
    tell(tmp_path)  # a resumed run has the same id
    assert fake.told[4][1]["id"] == begun["id"]


def test_mlflow_gets_the_same_and_a_resumed_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", fake := FakeMlflow())
    monkeypatch.setitem(sys.modules, "mlflow.entities", fake.entities)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///a.db")
    tell(tmp_path)
    created, params, epoch, scores, end = fake.told
    assert created == ("create", "clocs", tmp_path.name)
    assert params[1]["train.epochs"] == "3"
    assert ("loss/train", 4.0, 1) in epoch[2]
    assert ("score/m/linear/auroc/frame/labels_1", 0.75, 2) in scores[2]
    assert end == ("end", "id-1")
    fake.told.clear()
    tell(tmp_path)
    assert [one[0] for one in fake.told] == ["id-1", "id-1", "end"]


@pytest.mark.parametrize(("variable", "name"), [("WANDB_PROJECT", "wandb"), ("MLFLOW_TRACKING_URI", "mlflow")])
def test_a_tracker_that_is_not_installed_is_one_sentence(tmp_path, monkeypatch, variable, name):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv(variable, "x")
    (tracker,) = trackers()
    with pytest.raises(Unavailable, match=rf"and {name} is not installed: `pip install 'clocs\[{name}\]'`"):
        tracker.begin(run_at(tmp_path))
    tracker.add_epoch(run_at(tmp_path), epoch_done(1, 4.0, [5.0]))  # was told already: says nothing more


def test_no_name_of_a_score_is_a_folder_of_another():
    """MLflow's store of files makes folders of slashes."""
    names = scores_of(run_done())
    assert len(names) == 12
    assert not [(a, b) for a in names for b in names if b.startswith(f"{a}/")]
