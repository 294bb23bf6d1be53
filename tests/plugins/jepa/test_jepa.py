"""Joint-embedding prediction: the loss in loops, the teacher, and what a checkpoint needs."""

from __future__ import annotations

import pytest
import torch
from masked_worlds import build, draws, residual, transformer, views_of

from clocs_core.train.step import Encoding


@torch.no_grad()
@pytest.mark.parametrize(("make", "views", "samples"), [(transformer, 1, 60), (transformer, 2, 60), (residual, 1, 61)])
def test_the_loss_is_the_distance_to_the_teacher_where_samples_are_hidden(make, views, samples):
    """In loops over recordings, positions and features; smooth L1 is quadratic below 1."""
    reader = make(samples).eval()
    objective, given = build("jepa", reader, samples), views_of(views=views, samples=samples)
    found = objective(Encoding([reader]), given, draws())
    signal = given.signal.flatten(0, 1)
    partial, hidden = objective.masks.draw(signal, draws())
    context, target = reader.sequence(partial), objective.teacher.sequence(signal)
    total, count = 0.0, 0
    marked = context + hidden[..., None] * objective.mark
    guess = objective.predictor(marked.transpose(1, 2)).transpose(1, 2)
    for row in range(len(signal)):
        for t in range(hidden.shape[1]):
            if not hidden[row, t]:
                continue
            wanted = target[row, t]
            wanted = (wanted - wanted.mean()) / (wanted.var(correction=0) + 1e-5).sqrt()
            parts = [abs(float(one)) for one in guess[row, t] - wanted]
            total += sum(0.5 * part**2 if part < 1 else part - 0.5 for part in parts) / len(parts)
            count += 1
    assert float(found) == pytest.approx(total / count, abs=1e-10)


def test_the_teacher_gets_no_gradient_and_everything_else_does():
    reader = transformer()
    objective = build("jepa", reader)
    objective(Encoding([reader]), views_of(), draws()).backward()
    assert all(one.grad is None for one in objective.teacher.parameters())
    assert all(one.grad is not None for one in (*objective.predictor.parameters(), objective.mark))
    assert reader.embed.weight.grad.any()


@torch.no_grad()
def test_the_teacher_follows_ever_more_slowly():
    """Its momentum rises from the first value to the second over the steps of the run, and stays there."""
    reader = transformer()
    objective = build("jepa", reader, steps=4, momentum=(0.5, 0.9))
    kept = []
    for _ in range(6):
        before = objective.teacher.embed.weight.clone()
        reader.embed.weight.copy_(before + 1)
        objective.after_step(reader)
        kept.append(1 - float((objective.teacher.embed.weight - before).mean()))
    assert kept == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9, 0.9])


def test_the_teacher_has_the_statistics_of_the_encoder_and_stays_in_evaluation():
    reader = residual()
    objective = build("jepa", reader)
    assert not any(module.training for module in objective.teacher.modules())
    reader.train()(views_of().signal[0])
    objective.after_step(reader)
    assert torch.equal(objective.teacher.stem.norm.running_mean, reader.stem.norm.running_mean)
