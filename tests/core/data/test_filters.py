"""Filters of whole recordings: what they let through, what they remove, and that nothing moves in time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clocs_core.contracts.records import Drop, Framing, Record
from clocs_core.data.filters import filter_signal
from clocs_core.data.framing import cut_frames

RATE = 200.0
SAMPLES = 8000  # 40 s: the middle is far from both ends


def wave(frequency, rate=RATE, samples=SAMPLES):
    return np.sin(2 * np.pi * frequency * np.arange(samples) / rate)[None]


def warped(frequency, rate=RATE):
    """The frequency of an analogue filter that the bilinear transform maps to this one."""
    return math.tan(math.pi * frequency / rate)


def butterworth(frequency, limit, low, order=4, rate=RATE):
    """Gain of a Butterworth filter, forwards and backwards: its power response, from its definition."""
    ratio = warped(frequency, rate) / warped(limit, rate)
    return 1 / (1 + (ratio if low else 1 / ratio) ** (2 * order))


@pytest.mark.parametrize("frequency", [0.25, 0.5, 2.0, 10.0, 20.0, 30.0])
def test_a_wave_keeps_its_phase_and_gets_the_gain_of_both_limits(frequency):
    """At a limit half of the amplitude is left: 3 dB on the way forwards, and 3 dB backwards."""
    found = filter_signal(wave(frequency), RATE, Framing(band_pass=(0.5, 20.0)))
    gain = butterworth(frequency, 0.5, low=False) * butterworth(frequency, 20.0, low=True)
    middle = slice(SAMPLES // 4, -SAMPLES // 4)
    np.testing.assert_allclose(found[:, middle], gain * wave(frequency)[:, middle], atol=2e-3)


@pytest.mark.parametrize(("frequency", "gain"), [(50.0, 0.0), (47.0, 1.0), (53.0, 1.0), (5.0, 1.0)])
def test_a_notch_removes_one_frequency_and_leaves_its_neighbours(frequency, gain):
    found = filter_signal(wave(frequency), RATE, Framing(notch=50.0))
    middle = slice(SAMPLES // 4, -SAMPLES // 4)
    np.testing.assert_allclose(found[:, middle], gain * wave(frequency)[:, middle], atol=0.15 * gain + 1e-6)


def test_a_drift_goes_and_the_beginning_is_no_worse_than_the_end():
    """A filter that starts from zero would ring for seconds where a lead has an offset."""
    signal = 5 + wave(5.0, samples=2000)
    found = filter_signal(signal, RATE, Framing(band_pass=(0.5, 40.0)))
    assert abs(found[0, :200] - wave(5.0, samples=2000)[0, :200]).max() < 0.3
    assert abs(found).max() < 1.3


@pytest.mark.parametrize(
    "framing", [Framing(band_pass=(0.0, 100.0)), Framing(band_pass=(0, 500)), Framing(notch=100.0)]
)
def test_a_limit_beyond_what_a_recording_holds_changes_nothing(framing):
    signal = wave(3.0)
    assert filter_signal(signal, RATE, framing) is signal


@pytest.mark.parametrize("samples", [1, 2, 5])
def test_a_recording_shorter_than_the_filter_is_filtered_all_the_same(samples):
    found = filter_signal(wave(1.0, samples=samples), RATE, Framing(band_pass=(0.5, 40.0), notch=50.0))
    assert found.shape == (1, samples)
    assert np.isfinite(found).all()


def record_of(samples, rate=RATE, gain=1.0):
    return Record("p", "r", tuple(f"L{n}" for n in range(len(samples))), "mV", rate, samples, gain=gain)


def test_the_recording_is_filtered_before_it_is_cut_and_before_it_is_resampled():
    """Frame by frame, every frame would have its own ends."""
    signal = np.concatenate([wave(3.0) + 0.5, wave(0.1)])
    for framing in (Framing(1000, band_pass=(0.5, 40.0)), Framing(500, sampling_rate=100.0, band_pass=(0.5, 40.0))):
        whole = filter_signal(signal, RATE, framing)
        plain = Framing(framing.frame_samples, sampling_rate=framing.sampling_rate)
        found, expected = cut_frames(record_of(signal), framing), cut_frames(record_of(whole), plain)
        np.testing.assert_array_equal(found.samples, expected.samples)
        np.testing.assert_array_equal(found.start, expected.start)


def test_counts_of_a_recorder_are_filtered_in_their_unit():
    counts = np.round(1000 * wave(3.0)).astype(np.int16)
    found = cut_frames(record_of(counts, gain=500.0), Framing(1000, notch=50.0))
    assert (found.samples.dtype, found.gain) == (np.float32, 1.0)
    assert abs(found.samples).max() == pytest.approx(2, abs=0.1)


def test_missing_and_flat_samples_are_found_as_without_a_filter():
    """A filter leaves ripples on a flat line, and would spread a NaN over the whole lead."""
    signal = np.concatenate([wave(3.0), wave(4.0)])
    signal[0, 1500] = np.nan
    signal[1, 2000:3000] = 2.0
    found = cut_frames(record_of(signal), Framing(1000, band_pass=(0.5, 40.0)))
    assert np.argwhere(~found.valid).tolist() == [[1, 0], [2, 1]]
    assert np.isfinite(found.samples).all()


def test_a_recording_that_is_too_slow_for_the_band_is_dropped():
    found = cut_frames(record_of(wave(3.0), rate=20.0), Framing(1000, band_pass=(10.0, 40.0)))
    assert found.drops == (Drop("band-pass above half the sampling rate", "r"),)
    assert not len(found.start)


@pytest.mark.parametrize("limits", [(40.0, 0.5), (-1.0, 40.0), (0.5, float("inf")), (0.5,), (1.0, 2.0, 3.0)])
def test_limits_that_are_no_band_are_refused(limits):
    with pytest.raises(ValueError, match="band_pass must be two frequencies in Hz, the lower one first"):
        Framing(band_pass=limits)
