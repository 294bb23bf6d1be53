"""Resampling as a layer: what scipy makes of a window, a layer that can be exported makes of it too."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import resample, resample_poly

from clocs_core.contracts.records import Framing
from clocs_core.inference.resampling import CircularStretch, build_stretch


def stretched(signal, length, resampler="fft"):
    framing = Framing(length, source_samples=signal.shape[-1], resampler=resampler, keep_flat=True)
    return build_stretch(framing)(torch.from_numpy(signal).float()).numpy()


@settings(max_examples=40)
@given(window=st.integers(2, 60), length=st.integers(1, 60), seed=st.integers(0, 9))
def test_the_fourier_method_is_a_filter_that_goes_around(window, length, seed):
    """Even and odd lengths, longer and shorter, with any common divisor: the sample at half the rate is the catch."""
    signal = np.random.default_rng(seed).normal(size=(2, 3, window))
    np.testing.assert_allclose(stretched(signal, length), resample(signal, length, axis=-1), atol=1e-5)


@pytest.mark.parametrize(("window", "length", "numbers"), [(5000, 2500, 5000), (256, 2500, 625 * 256)])
def test_the_windows_of_real_data_sets_take_few_numbers(window, length, numbers):
    """A matrix for 5000 samples to 2500 would be 50 MB beside an encoder of 200 kB."""
    signal = 100 + np.random.default_rng(0).normal(size=(2, 1, window)).cumsum(axis=2)
    np.testing.assert_allclose(stretched(signal, length), resample(signal, length, axis=-1), atol=5e-4)  # of some 100
    layer = build_stretch(Framing(length, source_samples=window))
    assert isinstance(layer, CircularStretch)
    assert layer.filters.numel() == numbers


def test_a_polyphase_filter_is_a_matrix():
    signal = 5 + np.random.default_rng(0).normal(size=(2, 3, 48))
    expected = resample_poly(signal, 5, 2, axis=-1, padtype="line")
    np.testing.assert_allclose(stretched(signal, 120, "polyphase"), expected, atol=1e-5)


def test_a_window_of_the_length_of_a_frame_is_left_alone():
    signal = np.random.default_rng(0).normal(size=(1, 1, 40))
    np.testing.assert_array_equal(stretched(signal, 40), signal.astype(np.float32))
