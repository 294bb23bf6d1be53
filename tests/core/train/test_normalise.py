"""Signals between 0 and 1: by torch, and by the kernel that does the same on a GPU."""

from __future__ import annotations

import os
from typing import get_args

import pytest
import torch
from triton_interpreter import pass_by_interpreter

from clocs_core.contracts.records import Normalisation
from clocs_core.train.normalise import leave, min_max, min_max_rows, normaliser, z_score

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


@pytest.fixture(params=["cpu"] if INTERPRETED else [pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    """Where the kernel runs."""
    pytest.importorskip("triton", reason="triton is not installed")
    return torch.device(request.param)


def test_min_max_puts_every_signal_between_0_and_1_by_itself():
    signal = torch.randn(2, 3, 1, 50) * torch.tensor([1.0, 10.0, 100.0])[:, None, None]
    scaled = min_max(signal)
    assert torch.allclose(scaled.amin(-1), torch.zeros(2, 3, 1))
    assert torch.allclose(scaled.amax(-1), torch.ones(2, 3, 1))


def test_every_channel_is_scaled_by_its_own_minimum_and_maximum():
    """Leads of one frame differ in size; scaled together, the small ones would be nearly flat."""
    signal = torch.tensor([[[0.0, 1.0, 2.0], [100.0, 300.0, 200.0]]])  # (frame, channel, sample)
    assert torch.allclose(min_max(signal), torch.tensor([[[0.0, 0.5, 1.0], [0.0, 1.0, 0.5]]]))


def test_a_flat_signal_is_normalised_to_zeros_not_to_nan():
    assert torch.equal(min_max(torch.full((1, 5), 3.0)), torch.zeros(1, 5))


def z_by_hand(signal, like=None):
    """(x - mean of its channel) / (deviation of all channels of the view + 1e-8), view by view, in loops."""
    views = []
    for view, clean in zip(signal.double(), (signal if like is None else like).double(), strict=True):
        means = [sum(channel.tolist()) / len(channel) for channel in clean]
        squares = [(x - mean) ** 2 for channel, mean in zip(clean.tolist(), means, strict=True) for x in channel]
        deviation = (sum(squares) / len(squares)) ** 0.5 + 1e-8
        views.append([[(x - m) / deviation for x in channel] for channel, m in zip(view.tolist(), means, strict=True)])
    return torch.tensor(views)


def test_a_z_score_has_one_deviation_for_all_channels_of_a_view():
    """A lead of twice the amplitude of another still has it."""
    signal = torch.randn(3, 2, 40) * torch.tensor([1.0, 2.0])[:, None] + torch.tensor([5.0, -3.0])[:, None]
    found = z_score(signal)
    torch.testing.assert_close(found, z_by_hand(signal), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.std(-1)[:, 1] / found.std(-1)[:, 0], signal.std(-1)[:, 1] / signal.std(-1)[:, 0])
    torch.testing.assert_close(z_score(1000 * signal), found, atol=1e-5, rtol=1e-5)


def test_a_z_score_like_a_clean_view_keeps_what_a_perturbation_did_to_its_scale():
    clean = torch.randn(2, 3, 40)
    torch.testing.assert_close(z_score(0.5 * clean, like=clean), z_by_hand(0.5 * clean, clean), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(z_score(clean, like=torch.ones(2, 3, 40)), z_by_hand(clean), atol=1e-5, rtol=1e-5)


def test_a_flat_view_has_the_z_score_zero_and_not_nan():
    assert torch.equal(z_score(torch.full((1, 2, 5), 3.0)), torch.zeros(1, 2, 5))


def test_every_normalisation_has_its_function():
    """And keeps the shape of what it gets, whatever views there are beside it."""
    signal = torch.randn(2, 3, 4, 50)
    found = {name: normaliser(name, 0.25 if name == "constant" else None) for name in get_args(Normalisation)}
    assert (found["min-max"], found["none"], found["z-score"]) == (min_max, leave, z_score)
    assert torch.equal(found["constant"](signal, like=signal), signal / 0.25)
    assert found["none"](signal, like=signal) is signal
    assert all(one(signal).shape == one(signal, like=signal).shape == signal.shape for one in found.values())


def by_hand(signal):
    """(x - low) / (high - low + 1e-8), signal by signal."""
    rows = []
    for row in signal.cpu().reshape(-1, signal.shape[-1]):
        low, high = row.min(), row.max()
        rows.append((row - low) / (high - low + 1e-8))
    return torch.stack(rows).view(signal.shape)


@pytest.mark.parametrize("shape", [(3, 50), (2, 3, 7), (2, 3, 4, 33), (1, 1, 1, 1), (2, 2, 1, 64)])
def test_the_kernel_gives_the_same_numbers(shape, device):
    """To the last bit: a run does not depend on where it is normalised."""
    signal = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 3 + 5).to(device)
    assert torch.equal(min_max_rows(signal).cpu(), by_hand(signal))


def test_the_kernel_reads_signals_in_whatever_order_they_lie(device):
    """Views of segments are a transposition, and nobody copies them first; what comes out lies row after row."""
    signal = torch.randn(3, 2, 2, 40, device=device).transpose(0, 1)[..., 1:39:2]
    made = min_max_rows(signal)
    assert made.is_contiguous()
    assert torch.equal(made.cpu(), by_hand(signal))


def test_one_broken_sample_breaks_its_signal_and_no_other(device):
    """As torch has it, so that the loss is NaN and somebody is told; a flat signal becomes zeros."""
    signal = torch.randn(4, 30, device=device)
    signal[1, 7] = float("nan")
    signal[2] = 4.0
    made = min_max_rows(signal)
    assert made[1].isnan().all()
    assert made[2].count_nonzero() == 0
    assert made[[0, 3]].isfinite().all()


def test_the_operator_keeps_torchs_contracts(device):
    """Shapes are known without values, which is how a host sync is found without a GPU."""
    signal = torch.randn(2, 3, 9, device=device)
    torch.library.opcheck(torch.ops.clocs.min_max.default, (signal,), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter")
def test_the_kernel_does_all_this_by_tritons_interpreter():
    """On a machine without a GPU, in a process that has never imported triton otherwise."""
    pass_by_interpreter(__file__)
