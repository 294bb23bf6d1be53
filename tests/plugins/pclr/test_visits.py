"""PCLR: the views, the loss in loops, and recordings that cannot serve."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from clocs_core import Batch
from clocs_core.cli import main
from clocs_core.train.projector import Projector
from clocs_core.train.step import ContrastiveObjective, Encoding
from clocs_plugins.contrastive_losses import PatientNCEOptions, build_patient_nce
from clocs_plugins.pclr import clocs_methods, clocs_views


def batch_of(patients, visits=2, channels=2, samples=5):
    ids = torch.tensor(patients)
    signal = torch.randn(len(ids), visits, channels, samples, generator=torch.Generator().manual_seed(0)).double()
    return Batch(signal, ids, ids, ids, ids)


def views_of(batch, **options):
    (offer,) = clocs_views()
    return offer.build(offer.options(**options))(batch, torch.Generator())


@pytest.mark.parametrize("visits", [2, 3])
def test_the_recordings_of_a_patient_are_the_views(visits):
    batch = batch_of([1, 2, 3], visits)
    views = views_of(batch, visits=visits)
    assert views.signal.shape == (visits, 3, 2, 5)
    for instance in range(3):
        for visit in range(visits):
            assert torch.equal(views.signal[visit, instance], batch.signal[instance, visit])


def test_another_number_of_recordings_is_refused():
    with pytest.raises(ValueError, match="with one frame of each of 2 recordings"):
        views_of(batch_of([1, 2], visits=3))


@pytest.mark.parametrize(("leads", "reads"), [("each", "one"), ("all", "all")])
def test_it_asks_for_different_recordings_of_a_patient(leads, reads):
    (offer,) = clocs_views()
    needs = offer.needs(offer.options(visits=3, leads=leads))
    assert (needs.recordings, needs.segments, needs.channels, needs.encoder_channels) == (3, 1, leads, reads)


@torch.no_grad()
def test_the_loss_tells_the_other_recording_of_a_patient_from_those_of_others():
    """In loops: each visit finds the other among all of the batch; equal patients of a batch are positives too."""
    torch.manual_seed(0)
    batch = batch_of([7, 8, 7])
    reader = nn.Sequential(nn.Flatten(), nn.Linear(10, 4)).double()
    projector = Projector(4, (3,)).double()
    objective = ContrastiveObjective(build_patient_nce(PatientNCEOptions(temperature=0.1)), projector)
    found = float(objective(Encoding([reader]), views_of(batch)))

    layer = projector.layers[0]
    made = [[layer(reader(batch.signal[i, v][None]))[0] for i in range(3)] for v in range(2)]

    def cosine(u, w):
        return float(u @ w) / math.sqrt(float(u @ u) * float(w @ w))

    expected = 0.0
    for one, other in ((0, 1), (1, 0)):
        right = [[cosine(made[one][i], made[other][k]) / 0.1 for k in range(3)] for i in range(3)]
        logs = [[row[k] - math.log(sum(map(math.exp, row))) for k in range(3)] for row in right]
        expected -= sum(logs[i][i] for i in range(3)) / 3
        expected -= (logs[0][2] + logs[2][0]) / 2  # the two instances of patient 7
    assert found == pytest.approx(expected, abs=1e-10)


def test_the_method_has_a_projector():
    (method,) = clocs_methods()
    assert (method.views, method.loss) == ("visits", "patient-nce")
    assert method.presets["train"]["projector"] == [512, 128]


def test_patients_with_one_recording_are_refused_in_a_sentence(tmp_path, capsys):
    """Before anything is trained."""
    import numpy as np

    np.save(tmp_path / "x.npy", np.zeros((10, 1, 300), np.float32) + np.arange(300, dtype=np.float32) % 7)
    (tmp_path / "ids.csv").write_text("\n".join(["patient,label", *(f"{n},{'ab'[n % 2]}" for n in range(10))]) + "\n")
    table = str(tmp_path / "ids.csv")
    data = ("--dataset", "arrays", "--root", str(tmp_path / "x.npy"), "--sampling-rate", "100", "--patients", table)
    more = ("--labels", table, "-o", "frame_samples=100", "--data-root", str(tmp_path / "data"), "--workers", "1")
    assert main(["run", "--plugin", "pclr", *data, *more, "--out", str(tmp_path / "run")]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "no patient of the train part has as many; choose recordings that were repeated" in said
