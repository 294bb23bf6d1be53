"""The convolution by products of matrices, held against the FFT in float64.

The kernels run on a GPU, and by Triton's interpreter in a process of its own.
"""

from __future__ import annotations

import os

import pytest
import torch
from triton_interpreter import pass_by_interpreter

from clocs_plugins.s4d.by_matrix import convolve_by_matrix
from clocs_plugins.s4d.layer import StateSpace, _by_fft

triton = pytest.importorskip("triton", reason="Triton is not installed: `pip install 'clocs[fused]'`")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
pytestmark = pytest.mark.usefixtures("_no_unwritten_memory")


@pytest.fixture
def _no_unwritten_memory():
    """Memory that was not written is NaN, so that reading it shows."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(INTERPRETED or before)
    yield
    torch.use_deterministic_algorithms(before)


@pytest.fixture(params=["cpu"] if INTERPRETED else [pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    return torch.device(request.param)


def layer(device, width, both, dtype=torch.float64):
    torch.manual_seed(0)
    return StateSpace(width, 4, both).to(device, dtype)


def noise(*shape, device, seed=1, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype).to(device)


def gradients(made, features, upstream, convolve):
    """The result, and the gradients of the features and of every weight."""
    leaf = features.clone().requires_grad_()
    made.zero_grad()
    found = convolve(leaf, made._at_lags(features.shape[1]))
    found.backward(upstream.to(found.dtype))
    return [found.detach(), leaf.grad, *(weight.grad.clone() for weight in made.parameters())]


def by_fft(features, at_lags):
    return _by_fft(features.transpose(1, 2), at_lags).transpose(1, 2)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(("count", "time", "width"), [(2, 1, 3), (1, 9, 2), (3, 64, 5), (2, 70, 66)])
def test_result_and_gradients_are_those_of_the_fft(count, time, width, both, device):
    """For sizes that fill tiles and sizes that do not; every place of a kernel in its matrix counts in its gradient."""
    made = layer(device, width, both)
    features = noise(count, time, width, device=device)
    upstream = noise(count, time, width, device=device, seed=2)
    found = gradients(made, features, upstream, lambda x, k: convolve_by_matrix(x, k, x.dtype))
    for one, other in zip(found, gradients(made, features, upstream, by_fft), strict=True):
        torch.testing.assert_close(one, other)


def test_features_and_gradients_may_lie_in_memory_as_they_like(device):
    """A transposed view, and the gradient of a sum, which is one number for all."""
    made, features = layer(device, 3, False), noise(2, 10, 3, device=device)
    results = []
    for one in (features.transpose(1, 2).contiguous().transpose(1, 2), features):
        leaf = one.clone(memory_format=torch.preserve_format).requires_grad_()
        convolve_by_matrix(leaf, made._at_lags(10), leaf.dtype).sum().backward()
        results.append(leaf.grad)
    assert torch.equal(*results)


@pytest.mark.parametrize("features_in", [torch.float32, torch.bfloat16])
def test_products_in_bfloat16_round_weights_and_features_and_nothing_else(features_in, device):
    """Kernels are computed in float32: eight bits cannot hold a phase that turns hundreds of times."""
    made = layer(device, 3, True, torch.float32)
    features, upstream = (noise(2, 50, 3, device=device, seed=n, dtype=torch.float32) for n in (1, 2))
    features = features.to(features_in)
    found = gradients(made, features, upstream, lambda x, k: convolve_by_matrix(x, k, torch.bfloat16))
    exact = gradients(made, features.float(), upstream, by_fft)
    assert (found[0].dtype, found[1].dtype) == (torch.bfloat16, features_in)
    for one, other in zip(found, exact, strict=True):
        assert (one.float() - other).norm() < 0.02 * other.norm()


def test_a_second_derivative_is_refused(device):
    made, features = layer(device, 2, False), noise(1, 8, 2, device=device).requires_grad_()
    loss = convolve_by_matrix(features, made._at_lags(8), features.dtype).square().sum()
    (slope,) = torch.autograd.grad(loss, features, create_graph=True)
    with pytest.raises(RuntimeError, match="no gradient"):
        slope.sum().backward()


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter")
def test_all_of_this_holds_by_the_interpreter():
    """On a machine without a GPU."""
    pass_by_interpreter(__file__)
