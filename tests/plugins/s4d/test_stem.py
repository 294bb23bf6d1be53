"""The stem: products of matrices give what its convolutions give."""

from __future__ import annotations

import pytest
import torch

from clocs_plugins.s4d.layer import LONGEST
from clocs_plugins.s4d.network import Layer
from clocs_plugins.s4d.stem import Stem


def stems(stride):
    """Two stems with the same weights."""
    torch.manual_seed(0)
    made = [Stem(3, 5, stride).double() for _ in range(2)]
    made[1].load_state_dict(made[0].state_dict())
    return made


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("stride", [1, 2, 4, 8, 32])
def test_products_are_the_convolutions(stride, training):
    """Features, gradients of signal and weights, and running statistics."""
    plain, other = stems(stride)
    signal = torch.randn(2, 3, 64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    leaves, results = [signal.clone().requires_grad_() for _ in range(2)], []
    for stem, leaf, run in ((plain, leaves[0], Stem.forward), (other, leaves[1], Stem.by_products)):
        results.append(run(stem.train(training), leaf))
        (results[-1] * torch.arange(5)).sum().backward()
    assert results[0].shape == (2, 64 // stride, 5)
    torch.testing.assert_close(*results)
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad)
    for one, two in zip(plain.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad)
    for one, two in zip(plain.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(one, two)


def test_names_of_weights_are_those_of_saved_encoders():
    """The first convolution, its norm, and the second convolution."""
    names = [name for name, _ in Stem(3, 5, 4).named_parameters()]
    assert names == ["0.1.weight", "0.1.bias", "1.weight", "1.bias", "3.1.weight", "3.1.bias", "4.weight", "4.bias"]


@pytest.mark.cuda
def test_on_a_gpu_products_are_taken_and_agree():
    plain, other = stems(4)
    signal = torch.randn(2, 3, 64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.testing.assert_close(other.cuda()(signal.cuda()).cpu(), plain(signal))


@pytest.mark.cuda
def test_under_autocast_a_layer_normalises_in_the_precision_of_its_input():
    """Within the rounding of bfloat16, where matrices follow; in float32 where an FFT does. Gradients stay float32."""
    layer = Layer(64, 4, both=False, dropout=0.0).cuda()
    for time, dtype in ((8, torch.bfloat16), (LONGEST + 1, torch.float32)):
        features = torch.randn(2, time, 64, device="cuda").bfloat16()
        with torch.autocast("cuda", torch.bfloat16):
            found, exact = layer._normalise(features), layer.norm(features)
        assert (found.dtype, exact.dtype) == (dtype, torch.float32)
        torch.testing.assert_close(found.float(), exact, rtol=2e-2, atol=2e-2)
        layer.zero_grad()
        found.float().square().sum().backward()
        assert layer.norm.weight.grad.dtype == torch.float32
        assert layer.norm.weight.grad.abs().min() > 0
