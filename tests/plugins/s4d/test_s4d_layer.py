"""The state space layer: its kernel is that of the recurrence, and every way to convolve gives the same."""

from __future__ import annotations

import cmath

import pytest
import torch

from clocs_plugins.s4d.layer import LONGEST, StateSpace, _by_convolution, _by_fft


def layer(width=3, state=4, both=False):
    torch.manual_seed(0)
    return StateSpace(width, state, both).double()


def noise(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def recurrence(made: StateSpace, feature: int, signal: list[float]) -> list[float]:
    """Follow x' = A x + u in loops, with u constant between positions, and read Re(C x) twice: states come in pairs."""
    step = float(made.log_step[feature].exp())
    out = [0.0] * len(signal)
    for n in range(made.log_decay.shape[1]):
        a = complex(-float(made.log_decay[feature, n].exp()), float(made.frequency[feature, n]))
        c = complex(float(made.output[0, feature, n]), float(made.output[1, feature, n]))
        x = 0j
        for t, u in enumerate(signal):
            x = cmath.exp(step * a) * x + (cmath.exp(step * a) - 1) / a * u
            out[t] += 2 * (c * x).real
    return out


@torch.no_grad()
def test_it_is_the_recurrence_of_its_states():
    made, signal = layer(), noise(2, 20, 3)
    found = made(signal)
    for row in range(2):
        for feature in range(3):
            u = signal[row, :, feature].tolist()
            expected = torch.tensor(recurrence(made, feature, u), dtype=torch.float64)
            expected += made.skip[feature].detach() * signal[row, :, feature]
            torch.testing.assert_close(found[row, :, feature], expected)


@torch.no_grad()
def test_backwards_it_is_the_same_in_mirrored_time_without_the_position_itself():
    """A position counts once, in the forward kernel."""
    made, signal = layer(both=True), noise(1, 15, 3)
    forward = layer(both=False)
    with torch.no_grad():
        for name in ("log_step", "log_decay", "frequency"):
            getattr(forward, name).copy_(getattr(made, name)[:3])
        forward.output.copy_(made.output[:, :3])
        forward.skip.copy_(made.skip)
    backward = made(signal) - forward(signal)
    kernel = made.kernel(15)[3:]
    for t in range(15):
        expected = sum((kernel[:, s - t] * signal[0, s] for s in range(t + 1, 15)), torch.zeros(3).double())
        torch.testing.assert_close(backward[0, t], expected)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("time", [1, 2, 7, 64])
def test_by_fft_and_by_the_sum_itself_it_is_the_same(both, time):
    """The sum is what an ONNX file contains. Products of matrices: test_by_matrix.py."""
    made, features = layer(both=both), noise(2, time, 3)
    at_lags, signal = made._at_lags(time), features.transpose(1, 2)
    expected = _by_convolution(signal, at_lags, both)
    torch.testing.assert_close(_by_fft(signal, at_lags), expected)


def test_kernels_fade_whatever_the_weights():
    """The decay is an exponential, so no step of an optimiser can make a state grow."""
    made = layer()
    with torch.no_grad():
        made.log_decay.normal_(0, 3, generator=torch.Generator().manual_seed(0))
        made.log_step.fill_(1.0)
    kernel = made.kernel(4000)
    assert kernel.isfinite().all()
    assert kernel[:, -10:].abs().max() < kernel.abs().max() * 1e-3


def test_under_autocast_it_computes_in_float32_by_fft():
    made = layer().float()
    with torch.autocast("cpu", torch.bfloat16):
        found = made(noise(1, 50, 3).float())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, made(noise(1, 50, 3).float()))


@pytest.mark.cuda
@pytest.mark.parametrize("time", [250, LONGEST, LONGEST + 1])
def test_a_gpu_convolves_as_a_cpu_does(time):
    made, features = layer(width=16).float(), noise(4, time, 16).float()
    expected = made(features)
    torch.testing.assert_close(made.cuda()(features.cuda()).cpu(), expected, rtol=1e-4, atol=1e-4)
