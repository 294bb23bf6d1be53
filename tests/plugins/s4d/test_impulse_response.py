"""The impulse response of state spaces, held against complex numbers in loops; its gradients against autograd's.

The kernels run on a GPU, and by Triton's interpreter in a process of its own.
"""

from __future__ import annotations

import cmath
import math
import os

import pytest
import torch
from triton_interpreter import pass_by_interpreter

from clocs_plugins.s4d.impulse_response import _respond, impulse_response, respond_by_torch
from clocs_plugins.s4d.layer import StateSpace

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
SIZES = [(1, 1, 1), (3, 4, 9), (2, 5, 128), (4, 16, 300)]  # kernels, states, positions


@pytest.fixture(params=["cpu"] if INTERPRETED else [pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    pytest.importorskip("triton", reason="Triton is not installed: `pip install 'clocs[fused]'`")
    return torch.device(request.param)


def weights_of(kernels, states, device="cpu", dtype=torch.float64):
    """Weights as a layer begins with, and somewhat beside them."""
    torch.manual_seed(0)
    made = StateSpace(kernels, states, both=False).to(device, dtype)
    weights = made.log_step, made.log_decay, made.frequency, made.output
    return [(one.detach() + 0.1 * torch.randn(one.shape).to(one)).requires_grad_() for one in weights]


def exponentials(log_step, log_decay, frequency, output):
    """Return what the two ways to respond take."""
    return log_step.exp(), -log_decay.exp(), frequency, output


@pytest.mark.parametrize(("kernels", "states", "time"), SIZES[:2])
def test_it_is_the_sum_over_states_in_complex_numbers(kernels, states, time):
    log_step, log_decay, frequency, output = weights = [one.detach() for one in weights_of(kernels, states)]
    found = impulse_response(*weights, time)
    for w in range(kernels):
        step = math.exp(log_step[w])
        for lag in range(time):
            total = 0.0
            for n in range(states):
                a = complex(-math.exp(log_decay[w, n]), frequency[w, n])
                c = complex(output[0, w, n], output[1, w, n])
                total += 2 * (c * (cmath.exp(step * a) - 1) / a * cmath.exp(step * a * lag)).real
            assert found[w, lag].item() == pytest.approx(total, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize(("kernels", "states", "time"), SIZES)
def test_kernels_have_the_response_and_the_gradients_of_torch(kernels, states, time, device):
    """For numbers of states and positions that fill tiles, and for others."""
    upstream = torch.randn(kernels, time, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(device)
    found = []
    for respond in (_respond, respond_by_torch):
        weights = weights_of(kernels, states, device)
        response = respond(*exponentials(*weights), time)
        response.backward(upstream)
        found.append([response.detach(), *(one.grad for one in weights)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


def test_in_float32_phases_of_hundreds_of_turns_are_right(device):
    """Beside the rounding of the phase itself, which torch has too."""
    upstream = torch.randn(8, 500, generator=torch.Generator().manual_seed(1)).to(device)
    found = []
    for respond, dtype in (
        (_respond, torch.float32),
        (respond_by_torch, torch.float32),
        (respond_by_torch, torch.float64),
    ):
        weights = weights_of(8, 16, device, torch.float32)
        weights = [one.detach().to(dtype).requires_grad_() for one in weights]
        response = respond(*exponentials(*weights), 500)
        response.backward(upstream.to(dtype))
        found.append([response.detach(), *(one.grad for one in weights)])
    for ours, theirs, exact in zip(*found, strict=True):
        scale = exact.norm()
        assert (ours - exact).norm() / scale < 2 * (theirs - exact).norm() / scale + 1e-6


def test_a_second_derivative_is_refused(device):
    weights = weights_of(2, 3, device)
    (slope,) = torch.autograd.grad(_respond(*exponentials(*weights), 5).square().sum(), weights[0], create_graph=True)
    with pytest.raises(RuntimeError, match="no gradient"):
        slope.sum().backward()


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter")
def test_all_of_this_holds_by_the_interpreter():
    """On a machine without a GPU."""
    pass_by_interpreter(__file__)
