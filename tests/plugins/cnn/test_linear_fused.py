"""The last layer of the encoder as kernels in triton, held against torch's modules in float64.

As in test_block_fused.py, they run on a GPU, and by triton's interpreter in a process of its own.
"""

from __future__ import annotations

import os

import pytest
import torch
from torch import nn
from triton_interpreter import pass_by_interpreter

from clocs_plugins.cnn import fused_geometry as geometry
from clocs_plugins.cnn.implementations import run_linear
from clocs_plugins.cnn.linear_fused import can_fuse_linear, fused_linear

triton = pytest.importorskip("triton", reason="triton is not installed")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
CLOSE = 2e-6 if INTERPRETED else 5e-5


@pytest.fixture(params=["cpu"] if INTERPRETED else [pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request, monkeypatch):
    """Where the kernels run, with small shares, so that a few signals leave several of them."""
    from clocs_plugins.cnn import linear_kernels

    for name, value in (("SHARE", 64), ("BACKWARD_TILE", 32)):
        monkeypatch.setattr(linear_kernels, name, value)
    if INTERPRETED:
        for module in (geometry, linear_kernels):
            monkeypatch.setattr(module, "PRECISION", "ieee")
    return torch.device(request.param)


def draw(rows, inner, dim, device):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(rows, inner, generator=generator)
    weight, bias = torch.randn(dim, inner, generator=generator), torch.randn(dim, generator=generator)
    upstream = torch.randn(rows, dim, generator=generator)
    return [one.to(device) for one in (features, weight, bias, upstream)]


def agree(found, exact):
    scale = max(0.1, exact.abs().max().item())
    torch.testing.assert_close(found.double().cpu(), exact.cpu(), rtol=0, atol=CLOSE * scale)


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize(("rows", "inner", "dim"), [(1, 1, 1), (33, 70, 40), (64, 64, 32), (130, 20, 33)])
def test_it_is_the_linear_layer_and_the_relu_of_torch(rows, inner, dim, relu, device):
    """Output and all gradients, for sizes that fill tiles and sizes that do not, with one share and with several."""
    features, weight, bias, upstream = draw(rows, inner, dim, device)
    leaves = [one.clone().requires_grad_() for one in (features, weight, bias)]
    exact = [one.double().requires_grad_() for one in (features, weight, bias)]
    found, plain = fused_linear(*leaves, relu), nn.functional.linear(*exact)
    plain = plain.relu() if relu else plain
    agree(found.detach(), plain.detach())
    clear = (plain.detach().abs() > 1e-3).float()  # where a rounding does not open or close the ReLU
    found.backward(upstream * clear)
    plain.backward((upstream * clear).double())
    for ours, torchs in zip(leaves, exact, strict=True):
        agree(ours.grad, torchs.grad)


def test_features_and_gradients_may_lie_in_memory_as_they_like(device):
    """A transposed view, and the gradient of a sum, which is one number for all."""
    features, weight, bias, _ = draw(24, 30, 8, device)
    results = []
    for one in (features.t().contiguous().t(), features):
        leaf = weight.clone().requires_grad_()
        fused_linear(one, leaf, bias, True).sum().backward()
        results.append(leaf.grad)
    assert torch.equal(*results)


def test_a_nan_is_not_hidden_by_the_relu(device):
    """A broken signal must break the loss, so that it is noticed."""
    features, weight, bias, _ = draw(4, 6, 5, device)
    features[1, 2] = float("nan")
    made = fused_linear(features, weight, bias, True)
    assert made[1].isnan().all()
    assert made[0].isfinite().all()


def test_the_operator_keeps_torchs_contracts(device):
    """Nothing is changed behind torch's back, and shapes are known without values."""
    features, weight, bias, _ = draw(8, 6, 5, device)
    leaves = [one.requires_grad_() for one in (features, weight, bias)]
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(torch.ops.clocs.linear_relu.default, (*leaves, True), test_utils=checks)


@pytest.mark.cuda
@pytest.mark.skipif(INTERPRETED, reason="the interpreter has no GPU")
def test_on_a_gpu_it_is_chosen_in_training_and_left_alone_otherwise():
    """Evaluation is plain, and so is a layer that somebody listens to."""
    linear, relu = nn.Linear(6, 5).cuda(), nn.ReLU()
    features = torch.randn(8, 6, device="cuda")

    def is_plain():
        return type(run_linear(linear, relu, features, "auto").grad_fn).__name__ == "ReluBackward0"

    assert not is_plain()
    linear.eval()
    assert is_plain()
    linear.train().register_forward_hook(lambda *_: None)
    assert is_plain()


def test_elsewhere_it_is_left_to_torch():
    """Other devices and types."""
    assert not can_fuse_linear(torch.zeros(2, 3), torch.zeros(4, 3))
    linear = nn.Linear(3, 4)
    features = torch.randn(2, 3)
    assert torch.equal(run_linear(linear, nn.ReLU(), features, "auto"), linear(features).relu())
    assert torch.equal(run_linear(linear, nn.Identity(), features, "plain"), linear(features))


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter")
def test_all_of_this_holds_by_the_interpreter():
    """On a machine without a GPU."""
    pass_by_interpreter(__file__)
