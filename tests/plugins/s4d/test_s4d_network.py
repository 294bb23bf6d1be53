"""The state space encoder: what it sees, its sizes, and its embedding."""

from __future__ import annotations

import pytest
import torch

from clocs_core import SettingsError
from clocs_plugins.s4d import clocs_encoders


def build(channels=2, samples=200, embedding_dim=8, **options):
    (offer,) = clocs_encoders()
    torch.manual_seed(0)
    return offer.build(offer.options(**options), channels, samples, embedding_dim).eval()


def noise(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16, 32])
def test_a_position_sees_its_own_samples_and_no_later_one(stride):
    """In float64 and by the gradient: exactly the samples before (t + 1) * stride count, the last of them included."""
    made = build(stride=stride, layers=1).double()
    signal = noise(1, 2, 160).double().requires_grad_()
    for t in (0, 3):
        made.sequence(signal)[0, t, 0].backward()  # the sum over features is constant after a LayerNorm
        seen = signal.grad.abs().sum((0, 1)) > 1e-12
        assert not seen[(t + 1) * stride :].any()
        assert seen[(t + 1) * stride - 1]
        signal.grad = None


def test_in_both_directions_a_position_sees_the_whole_signal():
    made = build(direction="both", layers=1).double()
    signal = noise(1, 2, 64).double().requires_grad_()
    made.sequence(signal)[0, 3, 0].backward()
    assert not made.causal
    assert (signal.grad.abs().sum((0, 1)) > 0).all()


def test_the_embedding_is_the_mean_of_the_sequence():
    made, signal = build(), noise(3, 2, 200)
    assert made(signal).shape == (3, 8)
    torch.testing.assert_close(made(signal), made.sequence(signal).mean(1))


@pytest.mark.parametrize("samples", [4, 5, 7, 200, 203, 999])
def test_positions_are_a_stride_apart(samples):
    assert build().sequence(noise(1, 2, samples)).shape == (1, -(-samples // 4), 8)


def test_frames_shorter_than_the_stride_are_refused():
    with pytest.raises(SettingsError, match=r"frames of 3 samples, but needs at least 4, its stride\. Use longer"):
        build(samples=3)


def test_an_empty_batch_is_encoded():
    """One of several processes may have no instance in the last batch, and a target network then reads none."""
    network = build(samples=48, embedding_dim=6, layers=1)
    assert network(torch.zeros(0, 2, 48)).shape == (0, 6)
    assert network.sequence(torch.zeros(0, 2, 48)).shape[0] == 0
