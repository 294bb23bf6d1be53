"""The joint objective: both parts in loops, and each of them off."""

from __future__ import annotations

import math

import pytest
import torch

from clocs_core import Batch, Setup, SignalFacts, Task, Views
from clocs_core.train.projector import Projector
from clocs_core.train.step import Encoding
from clocs_plugins import contrastive_losses, cpc
from clocs_plugins.rhythm_and_patient import clocs_methods, clocs_objectives
from clocs_plugins.s4d.network import S4d

TAU = 0.3


def encoder(**options):
    torch.manual_seed(1)
    return S4d(2, 32, 6, layers=1, dropout=0.0, **options).double()


def build(reader, **options):
    (offer,) = clocs_objectives()
    signals = SignalFacts(samples=32, channels=("I", "II"), channel_axis=-2)
    torch.manual_seed(0)
    projector = Projector(6, (4,))
    task = Task("rhythm", classes=("a", "b"))
    parts = (*cpc.clocs_objectives(), *contrastive_losses.clocs_losses())
    setup = Setup(encoder=reader, embedding_dim=6, task=task, signals=signals, projector=projector, parts=parts)
    return offer.build(offer.options(**{"ahead": 2, "temperature": TAU, **options}), setup).double()


def views_of(patients=(5, 6, 5)):
    ids = torch.tensor(patients)
    signal = torch.randn(2, len(ids), 2, 32, generator=torch.Generator().manual_seed(0)).double()
    return Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids))


def rhythm_in_loops(objective, reader, views):
    """Contrastive predictive coding: each position tells the next ones from all others of its recording."""
    flat = views.signal.flatten(0, 1)
    context, target = reader.sequence(flat), objective.cpc.targets(flat).transpose(1, 2)
    weight = objective.cpc.predict.weight.view(2, 6, 6)  # (ahead, width, context)
    by_k = []
    for k in (1, 2):
        losses = []
        for row in range(len(flat)):
            for t in range(8 - k):
                guess = weight[k - 1] @ context[row, t]
                scores = [float(target[row, s] @ guess) / math.sqrt(6) for s in range(8)]
                losses.append(-scores[t + k] + math.log(sum(map(math.exp, scores))))
        by_k.append(sum(losses) / len(losses))
    return sum(by_k) / 2


def patient_in_loops(objective, reader, views):
    """Equations 1 to 4 of CLOCS for two views."""
    embedded = reader(views.signal.flatten(0, 1)).unflatten(0, (2, -1))  # at once: BatchNorm sees all of them
    made = [[objective.projector.layers[0](z) for z in view] for view in embedded]
    patient, loss = views.batch.patient.tolist(), 0.0
    for a, b in ((0, 1), (1, 0)):
        diagonal, others = [], []
        for i, u in enumerate(made[a]):
            cosines = [float(u @ v) / math.sqrt(float(u @ u) * float(v @ v)) / TAU for v in made[b]]
            total = math.log(sum(map(math.exp, cosines)))
            diagonal.append(total - cosines[i])
            others += [total - cosines[k] for k in range(len(patient)) if k != i and patient[k] == patient[i]]
        loss += sum(diagonal) / len(diagonal) + (sum(others) / len(others) if others else 0.0)
    return loss


@torch.no_grad()
@pytest.mark.parametrize(("rhythm", "patient"), [(1.0, 0.1), (0.5, 2.0), (1.0, 0.0), (0.0, 1.0)])
def test_the_loss_is_the_weighted_sum_of_its_parts(rhythm, patient):
    """A part of weight 0 is neither computed nor logged: this is the ablation."""
    reader, views = encoder(), views_of()
    objective = build(reader, rhythm=rhythm, patient=patient)
    found, parts = objective(Encoding([reader]), views)
    assert set(parts) == {name for name, weight in (("rhythm", rhythm), ("patient", patient)) if weight}
    expected = 0.0
    if rhythm:
        assert float(parts["rhythm"]) == pytest.approx(rhythm_in_loops(objective, reader, views), abs=1e-10)
        expected += rhythm * float(parts["rhythm"])
    if patient:
        assert float(parts["patient"]) == pytest.approx(patient_in_loops(objective, reader, views), abs=1e-10)
        expected += patient * float(parts["patient"])
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_both_parts_off_are_refused():
    with pytest.raises(ValueError, match="`rhythm` and `patient` are both 0"):
        build(encoder(), rhythm=0.0, patient=0.0)


def test_an_encoder_that_sees_what_follows_is_refused_unless_the_rhythm_is_off():
    reader = encoder(direction="both")
    with pytest.raises(ValueError, match="must not see it"):
        build(reader)
    assert build(reader, rhythm=0.0).cpc is None


def test_the_gradient_reaches_encoder_projector_and_predictions():
    reader = encoder()
    objective = build(reader)
    objective(Encoding([reader]), views_of())[0].backward()
    assert all(one.grad is not None for one in [*objective.parameters(), *reader.parameters()])


def test_the_method_has_a_projector_and_a_causal_encoder():
    (method,) = clocs_methods()
    assert (method.encoder, method.views) == ("s4d", "segments")
    assert method.presets["train"]["projector"] == [512, 128]
