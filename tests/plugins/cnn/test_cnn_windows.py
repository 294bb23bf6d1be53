"""The rows of windows and what is done to them, against loops over signals, positions and taps."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_plugins.cnn.windows import Windows, lay_windows

SHAPES = [
    # signals, samples, channels, kernel, stride, together
    (2, 20, 1, 7, 3, 1),
    (3, 23, 1, 7, 3, 1),  # an odd number of positions
    (2, 28, 1, 7, 3, 4),
    (3, 16, 1, 7, 3, 2),
    (2, 31, 2, 5, 2, 1),
    (2, 19, 3, 4, 1, 4),
    (1, 12, 2, 2, 5, 1),  # samples between the windows that none of them sees
    (2, 40, 1, 1, 2, 2),
    (2, 9, 4, 9, 1, 1),  # one position: no pair
]


def values(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def starts(windows):
    """The first sample of every window in the order of the rows: even positions of all signals, then odd ones."""
    places = range((windows.samples - windows.kernel) // windows.stride + 1)
    return [
        (signal, position * windows.stride)
        for parity in (0, 1)
        for signal in range(windows.signals)
        for position in places
        if position % 2 == parity
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_times_spread_filters_are_the_convolution_at_every_position(shape):
    """Even positions first, then odd ones, however many of them share a row."""
    windows, width = Windows(*shape), 3
    features, filters = values(windows.signals, windows.samples, windows.channels), values(windows.size, width, seed=1)
    found = (windows.rows(features) @ windows.spread(filters)).view(-1, width)
    expected = [features[s, first : first + windows.kernel].reshape(-1) @ filters for s, first in starts(windows)]
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_windows_add_up_where_windows_overlap(shape):
    """A sample gets the gradient of every window that it is in, and none where there is no window."""
    windows = Windows(*shape)
    rows = windows.signals * windows.positions // windows.together
    gradient = values(rows, windows.span)
    expected = torch.zeros(windows.signals, windows.samples, windows.channels, dtype=torch.float64)
    first_of_row = starts(windows)[:: windows.together]
    for (signal, first), row in zip(first_of_row, gradient, strict=True):
        for number, value in enumerate(row):
            expected[signal, first + number // windows.channels, number % windows.channels] += value
    torch.testing.assert_close(windows.add_up(gradient), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("shape", SHAPES)
def test_to_collect_is_the_adjoint_of_to_spread(shape):
    """What a gradient of the filters is, whatever the spread: <spread(a), b> = <a, collect(b)>."""
    windows, width = Windows(*shape), 2
    a, b = values(windows.size, width), values(windows.span, windows.together * width, seed=1)
    torch.testing.assert_close((windows.spread(a) * b).sum(), (a * windows.collect(b)).sum())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_pair_is_an_even_position_and_the_odd_one_behind_it(shape):
    """And an even position without one is in no pair, as MaxPool1d(2) has it. Views: targets are written to."""
    windows = Windows(*shape)
    numbered = torch.arange(windows.signals * windows.positions)[:, None]  # (signal * position, 1)
    even, odd = windows.pairs(numbered)
    where = starts(windows)
    for signal in range(windows.signals):
        for pair in range(windows.positions // 2):
            assert where[even[signal, pair, 0]] == (signal, 2 * pair * windows.stride)
            assert where[odd[signal, pair, 0]] == (signal, (2 * pair + 1) * windows.stride)
    assert even.shape == odd.shape == (windows.signals, windows.positions // 2, 1)
    even.zero_(), odd.zero_()
    assert (numbered != 0).sum() <= windows.signals * (windows.positions % 2)


@settings(max_examples=60)
@given(
    samples=st.integers(2, 200),
    channels=st.integers(1, 4),
    kernel=st.integers(1, 12),
    stride=st.integers(1, 5),
)
def test_windows_share_rows_only_where_their_number_allows_it(samples, channels, kernel, stride):
    """A row that is half in one signal and half in the next would mix patients."""
    if samples < kernel:
        return
    windows = lay_windows(torch.zeros(2, samples, channels), kernel, stride)
    assert windows.positions == len(range(0, samples - kernel + 1, stride))
    assert windows.even % windows.together == windows.odd % windows.together == 0
    assert windows.rows(torch.zeros(2, samples, channels)).shape == (
        2 * windows.positions // windows.together,
        windows.span,
    )


def test_thin_windows_share_a_row_and_wide_ones_do_not():
    """The first block of the paper's network gains by it, the others lose."""
    assert lay_windows(torch.zeros(1, 2500, 1), 7, 3).together == 2
    assert lay_windows(torch.zeros(1, 416, 4), 7, 3).together == 1


def test_features_need_not_be_contiguous():
    """Signals come as (n, channel, sample), and are only looked at the other way round."""
    windows, signal = Windows(2, 21, 3, 4, 2), values(2, 3, 21)
    turned = signal.transpose(1, 2)
    assert torch.equal(windows.rows(turned), windows.rows(turned.contiguous()))
