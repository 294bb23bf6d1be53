"""Time-warping against loops over pieces and samples."""

from __future__ import annotations

from itertools import combinations
from math import ceil, floor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_plugins.perturbations.options import TimeWarpOptions
from clocs_plugins.perturbations.timewarp import warp_time

quick = settings(max_examples=25)


def warp(signal, pieces=9, stretch=1.05, seed=0):
    return warp_time(signal, torch.Generator().manual_seed(seed), pieces=pieces, stretch=stretch)


def oracle(signal, stretched, pieces, stretch):
    """Each output sample: in which piece it falls, how far into it, and what the signal is there."""
    last = len(signal) - 1
    factors = [stretch if piece in stretched else 1 / stretch for piece in range(pieces)]
    warped = []
    for sample in range(len(signal)):
        piece, begin = 0, 0.0
        while piece < pieces - 1 and sample >= begin + last * factors[piece] / sum(factors):
            begin += last * factors[piece] / sum(factors)
            piece += 1
        part = (sample - begin) / (last * factors[piece] / sum(factors))
        time = min(max((piece + part) * last / pieces, 0.0), float(last))
        left = min(floor(time), last - 1)
        warped.append(signal[left] + (time - left) * (signal[left + 1] - signal[left]))
    return torch.tensor(warped, dtype=torch.float64)


@pytest.mark.parametrize(("pieces", "samples"), [(1, 20), (2, 31), (3, 40), (5, 64)])
@pytest.mark.parametrize("stretch", [1.05, 1.7])
def test_the_result_is_that_of_loops_for_one_half_of_the_pieces(pieces, samples, stretch):
    """Every signal draws a half of its own, rounded up, and in time every half is drawn."""
    signal = torch.randn(samples, generator=torch.Generator().manual_seed(samples), dtype=torch.float64)
    halves = list(combinations(range(pieces), ceil(pieces / 2)))
    expected = torch.stack([oracle(signal.tolist(), half, pieces, stretch) for half in halves])
    warped = warp(signal.expand(200, samples), pieces, stretch)
    apart = (warped[:, None] - expected).abs().amax(-1)  # (signal, half)
    assert apart.amin(1).max() < 1e-9
    assert set(apart.argmin(1).tolist()) == set(range(len(halves)))


@given(
    samples=st.integers(2, 400),
    pieces=st.integers(1, 20),
    stretch=st.floats(1, 10),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
@quick
def test_time_runs_forwards_from_the_same_beginning_to_the_same_end(samples, pieces, stretch, dtype):
    """A ramp shows where each sample came from."""
    came_from = warp(torch.arange(samples, dtype=dtype).expand(5, samples), pieces, stretch)
    assert (came_from[:, 0] == 0).all()
    assert (came_from[:, -1] == samples - 1).all()
    assert (came_from.diff() > -1e-3).all()
    assert came_from.amax() <= samples - 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("samples", [1, 2, 3, 50, 2500])
def test_a_stretch_of_1_changes_nothing(samples, dtype):
    """Not a bit of it: the way to switch it off in a sweep."""
    signal = torch.randn(4, samples, dtype=dtype)
    assert torch.equal(warp(signal, stretch=1.0), signal)


def test_a_stretched_piece_is_stretch_squared_times_as_long_as_a_squeezed_one():
    """Slow and fast samples of a ramp, away from the borders of pieces."""
    speed = warp(torch.arange(2001.0).double(), pieces=4, stretch=1.05).diff()
    slow, fast = speed.min().item(), speed.max().item()
    assert fast / slow == pytest.approx(1.05**2)
    assert ((speed - slow).abs() < 1e-9).sum() + ((speed - fast).abs() < 1e-9).sum() >= 1996


def test_float32_is_as_good_as_its_signals():
    """Times up to 2500 leave float32 four digits behind the point; shifts are computed apart to keep them."""
    signal = torch.randn(20, 2500, generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(warp(signal), warp(signal.double()).float(), atol=3e-3, rtol=0)


def test_there_are_9_pieces_and_5_percent_unless_said_otherwise():
    """As in the code that Sarkar and Etemad released."""
    options = TimeWarpOptions()
    assert (options.pieces, options.stretch) == (9, 1.05)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"pieces": 0}, "pieces must be 1 or more, got 0"),
        ({"stretch": 0.9}, "stretch must be between 1 and 10, got 0.9"),
        ({"stretch": float("nan")}, "stretch must be between 1 and 10, got nan"),
        ({"stretch": 11.0}, "stretch must be between 1 and 10, got 11.0"),
    ],
)
def test_options_that_warp_nothing_are_refused(wrong, rule):
    with pytest.raises(ValueError, match=rule):
        TimeWarpOptions(**wrong)
