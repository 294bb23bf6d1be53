"""Masked reconstruction: the loss in loops, and that hidden samples alone count."""

from __future__ import annotations

import pytest
import torch
from masked_worlds import build, draws, residual, transformer, views_of

from clocs_core.train.step import Encoding


@torch.no_grad()
@pytest.mark.parametrize(("make", "views", "samples"), [(transformer, 1, 60), (transformer, 2, 63), (residual, 1, 61)])
def test_the_loss_is_the_squared_error_of_hidden_samples(make, views, samples):
    reader = make(samples).eval()
    objective, given = build("mae", reader, samples), views_of(views=views, samples=samples)
    found = objective(Encoding([reader]), given, draws())
    signal, stride = given.signal.flatten(0, 1), reader.stride
    partial, hidden = objective.masks.draw(signal, draws())
    features = reader.sequence(partial)
    errors = []
    for row in range(len(signal)):
        for t in range(hidden.shape[1]):
            if hidden[row, t]:
                made = objective.decoder(features[row, t]).view(2, stride)
                for lead in range(2):
                    for k in range(stride):
                        there = t * stride + k < samples  # zeros complete the last position
                        wanted = float(signal[row, lead, t * stride + k]) if there else 0.0
                        errors.append((float(made[lead, k]) - wanted) ** 2)
    assert float(found) == pytest.approx(sum(errors) / len(errors), abs=1e-10)


def test_the_gradient_reaches_encoder_and_decoder():
    reader = transformer()
    objective = build("mae", reader)
    objective(Encoding([reader]), views_of(), draws()).backward()
    assert objective.decoder.weight.grad.any()
    assert reader.embed.weight.grad.any()
