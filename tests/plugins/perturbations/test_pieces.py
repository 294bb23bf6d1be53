"""Pieces by kernels, against the same draws by torch. They run on a GPU, and by Triton's interpreter."""

from __future__ import annotations

import os
from functools import partial

import pytest
import torch
from triton_interpreter import pass_by_interpreter

from clocs_plugins.perturbations import permutation, timewarp
from clocs_plugins.perturbations.pieces import MOST_PIECES, by_kernels, permuted, warped

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
SIZES = [(1, 20, 1), (3, 40, 2), (5, 1, 2), (9, 600, 2), (20, 13, 2), (20, 300, 1), (33, 200, 1)]
"""Pieces, samples and signals."""


@pytest.fixture(params=["cpu"] if INTERPRETED else [pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    pytest.importorskip("triton", reason="Triton is not installed: `pip install 'clocs[fused]'`")
    return torch.device(request.param)


def source():
    return torch.Generator().manual_seed(0)


def draw(pieces, samples, signals):
    """Signals, and the chances of their pieces as a perturbation draws them from `source`."""
    return torch.randn(2, signals, samples), torch.rand(2, signals, pieces, generator=source())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("pieces", "samples", "signals"), SIZES)
def test_a_permutation_is_the_one_of_torch_to_the_bit(pieces, samples, signals, dtype, device):
    """More pieces than samples too, of which some are empty."""
    signal, chance = draw(pieces, samples, signals)
    signal = signal.to(dtype)
    expected = permutation.permute(signal, source(), pieces=pieces)
    found = permuted(signal.to(device), chance.to(device))
    assert torch.equal(found.cpu(), expected)


@pytest.mark.parametrize("stretch", [1.05, 1.7])
@pytest.mark.parametrize(("pieces", "samples", "signals"), SIZES)
def test_a_warp_is_the_one_of_torch_in_float64(pieces, samples, signals, stretch, device):
    """A smooth signal: of noise, the rounding of time by 1e-4 samples would show."""
    _, chance = draw(pieces, samples, signals)
    phase = torch.arange(2.0 * signals).view(2, signals, 1)
    signal = torch.sin(torch.arange(samples) / 40 + phase)
    expected = timewarp.warp_time(signal.double(), source(), pieces=pieces, stretch=stretch)
    found = warped(signal.to(device), chance.to(device), stretch)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.cpu().double(), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize(("pieces", "samples", "signals"), SIZES)
def test_time_runs_forwards_from_the_same_beginning_to_the_same_end(pieces, samples, signals, device):
    """A ramp shows where each sample came from."""
    _, chance = draw(pieces, samples, signals)
    ramp = torch.arange(float(samples)).expand(2, signals, samples).to(device)
    came_from = warped(ramp, chance.to(device), 3.0).cpu()
    assert (came_from[..., 0] == 0).all()
    assert (came_from[..., -1] == samples - 1).all()
    assert (came_from.diff() > -1e-3).all()


@pytest.mark.parametrize(("pieces", "samples", "signals"), SIZES)
def test_a_stretch_of_1_changes_nothing(pieces, samples, signals, device):
    """Not a bit of it: the way to switch it off in a sweep."""
    signal, chance = draw(pieces, samples, signals)
    assert torch.equal(warped(signal.to(device), chance.to(device), 1.0).cpu(), signal)


def test_signals_of_other_strides_and_half_precision_are_read(device):
    signal, chance = draw(5, 64, 6)
    turned = signal.to(device).transpose(0, 1)
    other = chance.to(device).transpose(0, 1).contiguous()
    assert torch.equal(permuted(turned, other), permuted(turned.contiguous(), other))
    assert warped(turned.half(), other, 1.2).dtype == torch.float16
    torch.testing.assert_close(warped(turned.half(), other, 1.2).float(), warped(turned, other, 1.2), rtol=0, atol=3e-3)


@pytest.mark.parametrize("perturb", [permutation.permute, partial(timewarp.warp_time, stretch=1.2)])
@pytest.mark.cuda
def test_on_a_gpu_the_kernels_are_used_and_draw_as_torch_does(perturb):
    """The same numbers of the generator, so that a run has the same signals either way."""
    signal = draw(9, 2500, 4)[0].cuda()
    assert by_kernels(signal, 9)
    assert not by_kernels(signal.double(), 9)
    assert not by_kernels(signal, MOST_PIECES + 1)
    assert not by_kernels(signal.clone().requires_grad_(), 9)
    found, plain = (perturb(one, torch.Generator("cuda").manual_seed(3), pieces=9) for one in (signal, signal.double()))
    torch.testing.assert_close(found.double(), plain, rtol=0, atol=5e-3)


def test_on_a_cpu_the_kernels_are_not_used():
    assert not by_kernels(torch.zeros(3, 10), 2)


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter")
def test_all_of_this_holds_by_the_interpreter():
    """On a machine without a GPU."""
    pass_by_interpreter(__file__)
