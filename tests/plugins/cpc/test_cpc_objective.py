"""Contrastive predictive coding: the loss in loops, what is refused, and that it learns to look ahead."""

from __future__ import annotations

import math

import attrs
import pytest
import torch

from clocs_core import Batch, Setup, SignalFacts, Task, Views
from clocs_core.train.step import Encoding
from clocs_plugins.cpc import clocs_methods, clocs_objectives
from clocs_plugins.s4d.network import S4d


def encoder(channels=2, samples=48, dim=6, **options):
    torch.manual_seed(1)
    return S4d(channels, samples, dim, layers=1, dropout=0.0, **options)


def build(reader, channels=2, samples=48, ahead=3, autocast="none"):
    (offer,) = clocs_objectives()
    names = tuple(f"lead {number}" for number in range(channels))
    signals = SignalFacts(samples=samples, channels=names, channel_axis=-2 if channels > 1 else None)
    setup = Setup(encoder=reader, embedding_dim=6, task=Task("rhythm", classes=("a", "b")), signals=signals)
    setup = attrs.evolve(setup, autocast=autocast)
    torch.manual_seed(0)
    return offer.build(offer.options(ahead=ahead), setup)


def views_of(batch=3, channels=2, samples=48, views=1, seed=0):
    ids = torch.arange(batch)
    signal = torch.randn(views, batch, channels, samples, generator=torch.Generator().manual_seed(seed))
    return Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids))


@torch.no_grad()
@pytest.mark.parametrize(("views", "samples"), [(1, 48), (2, 48), (1, 51)])
def test_the_loss_is_that_of_the_paper(views, samples):
    """In loops over recordings, positions ahead and positions; zeros complete the last position."""
    reader = encoder(samples=samples).double()
    objective = build(reader, samples=samples).double()
    given = views_of(views=views, samples=samples)
    given = Views(given.signal.double(), given.batch)
    found, components = objective(Encoding([reader]), given)
    flat = given.signal.flatten(0, 1)
    whole, time = torch.cat([flat, torch.zeros(len(flat), 2, -samples % 4).double()], -1), -(-samples // 4)
    context, target = reader.sequence(flat), objective.targets(whole).transpose(1, 2)
    weight = objective.predict.weight.view(3, 6, 6)  # (ahead, width, context)
    by_k = []
    for k in (1, 2, 3):
        losses = []
        for row in range(len(flat)):
            for t in range(time - k):
                guess = weight[k - 1] @ context[row, t]
                scores = [float(target[row, s] @ guess) / math.sqrt(6) for s in range(time)]
                losses.append(-scores[t + k] + math.log(sum(map(math.exp, scores))))
        by_k.append(sum(losses) / len(losses))
    assert float(found) == pytest.approx(sum(by_k) / 3, abs=1e-10)
    assert float(components["nearest"]) == pytest.approx(by_k[0], abs=1e-10)
    assert float(components["farthest"]) == pytest.approx(by_k[2], abs=1e-10)


def test_in_a_run_with_bf16_the_loss_is_float32_and_hardly_differs():
    reader, found = encoder(), {}
    for autocast in ("none", "bf16"):
        found[autocast], _ = build(reader, autocast=autocast)(Encoding([reader]), views_of())
        found[autocast].backward()
    assert found["bf16"].dtype == torch.float32
    assert found["bf16"] != found["none"]
    assert found["bf16"].item() == pytest.approx(found["none"].item(), rel=0.01)


def test_an_encoder_that_sees_what_follows_is_refused():
    with pytest.raises(ValueError, match=r"must not see it: choose one whose sequence is causal, such as s4d"):
        build(encoder(direction="both"))


def test_more_positions_ahead_than_a_frame_has_are_refused():
    with pytest.raises(ValueError, match=r"predicts 12 positions ahead, and a frame of 48 samples has 12 of 4"):
        build(encoder(), ahead=12)


def test_the_gradient_reaches_the_encoder_the_targets_and_every_prediction():
    reader = encoder()
    objective = build(reader)
    objective(Encoding([reader]), views_of())[0].backward()
    assert all(one.grad is not None and one.grad.any() for one in objective.predict.parameters())
    assert all(one.grad is not None for one in objective.targets.parameters())
    assert reader.stem[0][-1].weight.grad.any()


@pytest.mark.slow
def test_it_learns_what_follows_in_a_rhythm_and_nothing_in_noise():
    """A beat every 16 samples can be foreseen; noise cannot, so its loss stays at a guess, log(positions)."""
    losses = {}
    for name in ("rhythm", "noise"):
        reader = encoder(channels=1, samples=64, dim=16)
        objective = build(reader, channels=1, samples=64, ahead=2)
        optimiser = torch.optim.Adam([*reader.parameters(), *objective.parameters()], 3e-3)
        draw = torch.Generator().manual_seed(0)
        for _ in range(150):
            if name == "noise":
                signal = torch.randn(1, 32, 1, 64, generator=draw)
            else:
                at = torch.arange(64) + torch.randint(16, (32, 1), generator=draw)
                signal = (at % 16 - 8).float().square().neg().div(2).exp().view(1, 32, 1, 64)
                signal = signal * (1 + at.view(1, 32, 1, 64) / 16).floor()  # each beat is higher than the last
            ids = torch.arange(32)
            loss, _ = objective(Encoding([reader]), Views(signal, Batch(signal, ids, ids, ids, ids)))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        losses[name] = float(loss.detach())
    assert losses["noise"] > 0.9 * math.log(16)
    assert losses["rhythm"] < 0.5 * math.log(16)


def test_the_method_reads_all_leads_with_an_encoder_that_has_a_sequence():
    (method,) = clocs_methods()
    assert (method.encoder, method.views) == ("s4d", "frames")
