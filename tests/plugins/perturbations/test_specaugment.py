"""SpecAugment against the paper's six steps, written in loops with a transform of its own."""

from __future__ import annotations

import cmath
import math
from collections import Counter
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_core import SettingsError
from clocs_plugins.perturbations.options import SpecAugmentOptions
from clocs_plugins.perturbations.specaugment import fit_window, mask_frequency, mask_time, spectrogram

quick = settings(max_examples=40)


def hann(window):
    return [0.5 - 0.5 * math.cos(2 * math.pi * n / window) for n in range(window)]


def centres(samples, hop):
    last = 0
    while last < samples - 1:
        last += hop
    return range(0, last + 1, hop)


def stft(signal, window, hop):
    """Step 1, by the sum that defines it. Beyond its ends the signal keeps its first and its last value."""
    spectrum = []
    for centre in centres(len(signal), hop):
        row = []
        for frequency in range(window // 2 + 1):
            total = 0j
            for n, weight in enumerate(hann(window)):
                at = min(max(centre - window // 2 + n, 0), len(signal) - 1)
                total += weight * signal[at] * cmath.exp(-2j * math.pi * frequency * n / window)
            row.append(total)
        spectrum.append(row)
    return spectrum


def istft(spectrum, window, hop, samples):
    """Step 6, by least squares (Griffin and Lim, 1984)."""
    total, weights = [0.0] * samples, [0.0] * samples
    for time, row in enumerate(spectrum):
        for n, weight in enumerate(hann(window)):
            at = time * hop - window // 2 + n
            if 0 <= at < samples:
                value = row[0].real
                for frequency in range(1, len(row)):
                    twice = 1 if 2 * frequency == window else 2  # a negative frequency for each but the highest
                    value += twice * (row[frequency] * cmath.exp(2j * math.pi * frequency * n / window)).real
                total[at] += weight * value / window
                weights[at] += weight**2
    return [a / b for a, b in zip(total, weights, strict=True)]


def masked_by_loops(spectrum, axis, starts, count):
    """Steps 4 and 5."""
    kept = []
    for time, row in enumerate(spectrum):
        kept.append([])
        for frequency, value in enumerate(row):
            place = time if axis == "time" else frequency
            hidden = any(start <= place < start + count for start in starts)
            kept[-1].append(0j if hidden else value)
    return kept


def random_signal(samples, seed=0):
    return torch.randn(samples, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


MASKS = {"time": mask_time, "frequency": mask_frequency}
CASES = [  # samples, window, hop, bins in time, bins in frequency
    (40, 8, 2, 21, 5),
    (41, 8, 4, 11, 5),
    (44, 11, 3, 16, 6),
    (63, 15, 7, 10, 8),
]


@pytest.mark.parametrize(("samples", "window", "hop", "n_time", "n_frequency"), CASES)
@pytest.mark.parametrize("axis", MASKS)
def test_the_result_is_the_papers_for_one_of_its_starts(axis, samples, window, hop, n_time, n_frequency):
    """Whichever start was drawn, the signal is what loops make of it; and every start is drawn, equally often."""
    signal, bins = random_signal(samples), n_time if axis == "time" else n_frequency
    count = round(0.3 * bins)
    spectrum = stft(signal.tolist(), window, hop)
    assert (len(spectrum), len(spectrum[0])) == (n_time, n_frequency)
    starts = range(bins - count + 1)
    results = [istft(masked_by_loops(spectrum, axis, [start], count), window, hop, samples) for start in starts]
    expected = torch.tensor(results, dtype=torch.float64)  # (start, sample)
    generator, signals = torch.Generator().manual_seed(1), signal.expand(100 * len(starts), samples)
    masked = MASKS[axis](signals, generator, width=0.3, repeats=1, window=window, hop=hop)
    apart = (masked[:, None] - expected).abs().amax(-1)  # (signal, start)
    assert apart.amin(1).max() < 1e-10
    seen = Counter(apart.argmin(1).tolist())
    assert set(seen) == set(starts)
    assert all(abs(times - 100) < 50 for times in seen.values())  # five standard deviations


@pytest.mark.parametrize("axis", MASKS)
def test_repeats_draw_a_start_each(axis):
    """Two masks, anywhere, also on top of each other: every pair of starts is drawn."""
    samples, window, hop = 32, 8, 4
    signal = random_signal(samples)
    spectrum = stft(signal.tolist(), window, hop)
    bins = len(spectrum) if axis == "time" else len(spectrum[0])
    count = round(0.4 * bins)
    pairs = [pair for pair in product(range(bins - count + 1), repeat=2) if pair[0] <= pair[1]]
    results = [istft(masked_by_loops(spectrum, axis, pair, count), window, hop, samples) for pair in pairs]
    expected = torch.tensor(results, dtype=torch.float64)
    signals, generator = signal.expand(1000, samples), torch.Generator().manual_seed(2)
    masked = MASKS[axis](signals, generator, width=0.4, repeats=2, window=window, hop=hop)
    apart = (masked[:, None] - expected).abs().amax(-1)
    assert apart.amin(1).max() < 1e-10
    assert set(apart.argmin(1).tolist()) == set(range(len(pairs)))


@given(
    samples=st.integers(1, 300),
    window=st.integers(2, 70),
    share=st.floats(0, 0.5),
    axis=st.sampled_from(sorted(MASKS)),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
@quick
def test_without_a_mask_the_signal_comes_back(samples, window, share, axis, dtype):
    """Edges included, for any length, window and hop: what changes is the mask, and nothing else."""
    signal = 3 + random_signal(samples, seed=samples).to(dtype)
    hop = max(1, int(share * window))
    same = MASKS[axis](signal, torch.Generator(), width=0.0, repeats=1, window=window, hop=hop)
    torch.testing.assert_close(same, signal, atol=1e-5 if dtype == torch.float32 else 1e-12, rtol=0)


def test_a_frame_of_2500_samples_comes_back():
    """The frames of every data set of the paper, with the defaults."""
    signal = random_signal(2500).float()
    for mask in MASKS.values():
        same = mask(signal, torch.Generator(), width=0.0, repeats=1, window=256, hop=64)
        torch.testing.assert_close(same, signal, atol=1e-5, rtol=0)


@pytest.mark.parametrize("mask", MASKS.values())
def test_a_mask_over_everything_is_silence(mask):
    """w = 1 is allowed by the paper."""
    assert (mask(random_signal(100), torch.Generator(), width=1.0, repeats=1, window=16, hop=4) == 0).all()


@pytest.mark.parametrize(("width", "masked"), [(0.2, 2), (0.22, 2), (0.24, 3), (0.01, 1), (1.0, 11)])
def test_the_number_of_bins_is_rounded_to_the_nearest_but_never_to_nothing(width, masked):
    """At the centre of a window of half overlap no other window has weight: ones there become zeros."""
    ones = torch.ones(500, 41, dtype=torch.float64)
    found = mask_time(ones, torch.Generator().manual_seed(0), width=width, repeats=1, window=8, hop=4)[:, ::4]
    assert found.shape[1] == 11
    assert ((found.abs() < 1e-9).sum(1) == masked).all()


def test_every_signal_has_a_mask_of_its_own():
    """Views with one mask in common would agree about it."""
    ones = torch.ones(2, 30, 4, 401, dtype=torch.float64)
    found = mask_time(ones, torch.Generator().manual_seed(0), width=0.1, repeats=1, window=8, hop=4)[..., ::4]
    starts = (found.abs() < 1e-9).double().argmax(-1)
    assert starts.unique().numel() > 60  # of 91 starts, 240 signals miss seven


def test_a_masked_stretch_is_silent_and_the_rest_is_untouched():
    """SA_t is local in time: beyond a window from the mask nothing changes."""
    signal = 3 + random_signal(2500)
    masked = mask_time(signal, torch.Generator().manual_seed(0), width=0.2, repeats=1, window=256, hop=64)
    silent = (masked.abs() < 1e-9).nonzero().flatten()
    assert silent.numel() >= 300  # 8 bins of 64 samples, less the windows' ends
    assert silent[-1] - silent[0] + 1 == silent.numel()
    apart = (masked - signal).abs()
    assert (apart[: max(0, silent[0] - 256)] < 1e-9).all()
    assert (apart[silent[-1] + 256 :] < 1e-9).all()


@pytest.mark.parametrize("mask", MASKS.values())
def test_tensors_without_values_can_be_masked_after_some_that_had_them(mask):
    """A dry run may follow a real one in the same process: nothing that was computed there may come up in it."""
    settings = {"width": 0.2, "repeats": 1, "window": 16, "hop": 4}
    generator = torch.Generator()
    mask(random_signal(100), generator, **settings)
    with FakeTensorMode():
        assert mask(torch.empty(3, 100, dtype=torch.float64), generator, **settings).shape == (3, 100)
    assert mask(random_signal(100), generator, **settings).isfinite().all()


@pytest.mark.parametrize(
    ("samples", "fitting"),
    [(2500, (256, 64)), (1024, (256, 64)), (1000, (250, 62)), (200, (50, 12)), (50, (12, 3)), (9, (2, 1)), (1, (2, 1))],
)
def test_window_and_hop_shrink_with_short_signals(samples, fitting):
    """A frame of 200 samples has no room for windows of 256, and a window of its length would see no time."""
    assert fit_window(samples, 256, 64) == fitting
    time, frequency = spectrogram(torch.ones(samples), *fitting).shape[1:]
    assert time == 1 + math.ceil((samples - 1) / fitting[1])
    assert frequency == fitting[0] // 2 + 1


def test_the_defaults_are_the_papers():
    """ "We chose w = 0.2 and R = 1"."""
    options = SpecAugmentOptions()
    assert (options.width, options.repeats) == (0.2, 1)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"width": -0.1}, "width must be between 0 and 1, got -0.1"),
        ({"width": 1.2}, "width must be between 0 and 1, got 1.2"),
        ({"width": float("nan")}, "width must be between 0 and 1, got nan"),
        ({"repeats": 0}, "repeats must be 1 or more, got 0"),
        ({"window": 1}, "window must be 2 or more, got 1"),
        ({"hop": 0}, "hop must be 1 or more, got 0"),
    ],
)
def test_options_that_mask_nothing_are_refused(wrong, rule):
    with pytest.raises(ValueError, match=rule):
        SpecAugmentOptions(**wrong)


def test_a_hop_that_leaves_gaps_between_windows_is_refused():
    """Half a window is the limit: beyond it samples would be divided by next to nothing."""
    SpecAugmentOptions(window=100, hop=50)
    with pytest.raises(SettingsError, match="hop=51 and window=100; make the hop half a window or less"):
        SpecAugmentOptions(window=100, hop=51)
