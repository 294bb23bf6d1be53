"""Every file of ours, damaged in some tens of ways: it reads as it was, or is refused in a sentence; nothing else.

Weights, splits and predictions have checksums. Settings, reports and metrics are text that people may change; a changed
value that is a possible one cannot be told from a wish, so these need only be whole records.
"""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import torch
from damaged_files import damaged_copies
from fake_encoders import fake_card
from fake_runs import points
from torch import nn

from clocs_core.artifacts.card import ClassifierCard, EncoderCard
from clocs_core.artifacts.classifier import load_classifier, save_classifier
from clocs_core.artifacts.curves import CurvePoint, read_curve, save_curve
from clocs_core.artifacts.documents import dump_record, read_text
from clocs_core.artifacts.encoder import load_encoder, save_encoder
from clocs_core.artifacts.metrics import EpochRow, read_rows, to_line
from clocs_core.artifacts.networks import with_head
from clocs_core.artifacts.predictions import Predictions, read_predicted_rows, save_predictions
from clocs_core.artifacts.reports import Report, SplitSummary, read_report
from clocs_core.artifacts.split import Split, from_json, to_json
from clocs_core.contracts.records import Framing, Task
from clocs_core.contracts.scores import Score
from clocs_core.errors import ClocsError
from clocs_core.plugins.session import open_session
from clocs_core.settings.options import plain, structure
from clocs_core.settings.sections import DataSettings, RunSettings, TrainSettings
from clocs_core.settings.toml_file import dump_tables, read_tables
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.learner import start

CPU = torch.device("cpu")
COPIES = 60  # of each file
SECTIONS = {"run": RunSettings, "data": DataSettings, "train": TrainSettings}
SCORE = Score("linear", "m", "tiny", 1.0, "hits", "frame", 0.75, 0.5, 1.0)
FLAT = {"encoder": "flat", "versions": {"clocs": "1"}, "split_hash": "abc", "settings": {"run": {"seed": 3}}}


@pytest.fixture(scope="module")
def catalogue():
    return open_session(points(), (), False).catalogue


def values(state):
    """Tensors as values that can be compared, NaN included."""
    return {name: repr(tensor.tolist()) for name, tensor in state.items()}


def learner():
    torch.manual_seed(0)
    return start(nn.ModuleList([nn.Linear(3, 2)]), nn.Linear(2, 1), 1e-2)


def encoder_at(path, catalogue):
    network = catalogue.encoders.get("flat").offer
    made = network.build(structure(network.options, {}, "encoder"), 1, 100, 8)
    card = fake_card(
        EncoderCard, **FLAT, method="m", count=1, pretrain_framing=Framing(frame_samples=100), scores=(SCORE,)
    )
    save_encoder({f"0.{name}": tensor for name, tensor in made.state_dict().items()}, card, path)


def read_encoder(path, catalogue):
    found = load_encoder(path, catalogue, CPU)
    return values(found.modules.state_dict()), found.card


def classifier_at(path, catalogue):
    network = catalogue.encoders.get("flat").offer
    made = with_head(network.build(structure(network.options, {}, "encoder"), 1, 100, 8), 8, Task("t", "ab"))
    save_classifier(made.state_dict(), fake_card(ClassifierCard, **FLAT, init="m", fraction=0.5), path)


def read_classifier(path, catalogue):
    found = load_classifier(path, catalogue, CPU)
    return values(found.network.state_dict()), found.card


def checkpoint_at(path, _catalogue):
    made = learner()
    made.objective(made.encoders[0](torch.ones(4, 3))).sum().backward()
    made.optimiser.step()
    save_checkpoint(made, path)


def read_checkpoint(path, _catalogue):
    found = learner()
    load_checkpoint(found, path)
    averages = {str(n): one["exp_avg"] for n, one in found.optimiser.state_dict().items()}
    return [values(one) for one in (found.encoders.state_dict(), found.best, averages)], found.progress


def predictions_at(path, _catalogue):
    rows = Predictions(np.array([[0.2, 0.8], [0.7, 0.3]]), np.array([0, 1]), np.array([0, 1]), np.array([1, 0]))
    save_predictions({("linear", "m", 1.0): rows, ("prior", "random", 1.0): rows}, ("p1", "p2"), ("r1", "r2"), path)


def read_predictions(path, _catalogue):
    found = read_predicted_rows(path)
    probability = {key: rows.probability.tolist() for key, rows in found.predicted.items()}
    return probability, found.patient.tolist(), found.record.tolist(), found.label.tolist()


def split_at(path, _catalogue):
    path.write_text(to_json(Split({f"p{n}": ("train", "test")[n % 2] for n in range(30)}, 3, "60/20/20")))


def read_split(path, _catalogue):
    return from_json(read_text(path)).parts  # the hash is of these, not of seed and rule


CHECKED = {
    "encoder.safetensors": (encoder_at, read_encoder),
    "classifier.safetensors": (classifier_at, read_classifier),
    "checkpoint.safetensors": (checkpoint_at, read_checkpoint),
    "predictions.npz": (predictions_at, read_predictions),
    "split.json": (split_at, read_split),
}


@pytest.mark.parametrize("name", CHECKED)
def test_a_damaged_file_with_a_checksum_reads_as_it_was_or_is_refused(tmp_path, catalogue, name):
    write, read = CHECKED[name]
    path = tmp_path / name
    write(path, catalogue)
    whole, expected, refused = path.read_bytes(), read(path, catalogue), []
    for damage, copy in damaged_copies(whole, path.suffix, COPIES):
        path.write_bytes(copy)
        try:
            found = read(path, catalogue)
        except ClocsError as problem:
            refused.append(str(problem))
            continue
        assert found == expected, damage
    assert len(refused) > COPIES / 2
    assert not any("\n" in message or len(message) > 900 for message in refused)


def settings_at(path):
    path.write_text(dump_tables({name: plain(cls()) for name, cls in SECTIONS.items()}))


def read_settings(path):
    tables = read_tables(path)
    for name, values_of in tables.items():
        structure(SECTIONS.get(name, RunSettings), values_of, name)


def report_at(path):
    report = Report(
        method="m", dataset="tiny", task="t", seed=0, settings={"run": {"seed": 3}}, epochs_run=1, best_epoch=1,
        stopped="all epochs", split=SplitSummary("abc", "60/20/20", 0, {"train": 3}, {}, {}, 0, 0),
        environment={"python": "3.11"}, scores=(SCORE,), notes=("a note",), seconds={"prepare": 1.5},
    )  # fmt: skip
    path.write_text(dump_record(report))


def read_whole_report(path):
    assert isinstance(read_report(read_text(path)), Report)


def metrics_at(path):
    numbers = {field.name: 0.5 for field in attrs.fields(EpochRow)}
    others = {"improved": True, "instances": 9, "components": {}}
    rows = [EpochRow(**{**numbers, **others, "epoch": epoch}) for epoch in (1, 2, 3)]
    path.write_text("".join(map(to_line, rows)))


def read_metrics(path):
    assert all(isinstance(row.epoch, int) for row in read_rows(read_text(path)))


def curve_at(path):
    save_curve([CurvePoint(epoch, 0.5, float("nan"), 0.25) for epoch in (1, 2, 3)], path)


TEXTS = {
    "settings.toml": (settings_at, read_settings),
    "report.json": (report_at, read_whole_report),
    "metrics.jsonl": (metrics_at, read_metrics),
    "curve.jsonl": (curve_at, read_curve),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_damaged_text_is_a_whole_record_or_is_refused(tmp_path, name):
    write, read = TEXTS[name]
    path = tmp_path / name
    write(path)
    whole, refused = path.read_bytes(), []
    read(path)
    for _damage, copy in damaged_copies(whole, path.suffix, COPIES):
        path.write_bytes(copy)
        try:
            read(path)
        except ClocsError as problem:
            refused.append(str(problem))
    assert len(refused) > COPIES / 4
