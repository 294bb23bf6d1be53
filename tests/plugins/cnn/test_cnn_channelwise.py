"""Moments and affine maps by channel, against the same written with torch's reductions in float64."""

from __future__ import annotations

import pytest
import torch

from clocs_plugins.cnn.channelwise import moments, scale_, scale_shift, shift_

SHAPES = [(1, 4), (63, 4), (64, 4), (65, 4), (999, 5), (17, 1), (300, 1), (40, 300), (1, 256), (513, 16), (2, 3)]


def values(shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", SHAPES)
def test_moments_are_those_of_each_channel(shape):
    """Also where the last, short row of memory is a part of its own, and where it is all there is."""
    features = values(shape) + 3
    mean, variance = moments(features, shape[1])
    torch.testing.assert_close(mean, features.mean(0), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(variance, features.var(0, correction=0), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_channel_has_its_own_coefficients(shape):
    """In any number of dimensions; the input stays as it is."""
    features, (scale, shift) = values(shape), values((2, shape[1]), seed=1)
    before = features.clone()
    found = scale_shift(features[None], scale, shift)
    torch.testing.assert_close(found[0], features * scale + shift, rtol=1e-13, atol=1e-13)
    assert torch.equal(features, before)
    assert scale_(features, scale) is features
    torch.testing.assert_close(features, before * scale, rtol=1e-13, atol=1e-13)
    assert shift_(features, shift) is features
    torch.testing.assert_close(features, before * scale + shift, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("rows", [425_984, 425_983])
def test_moments_of_long_columns_keep_their_digits_in_float32(rows):
    """One long column of float32 loses three of seven digits, so the columns are short, whether or not they fit."""
    features = values((rows, 4), torch.float32) + 10
    exact = features.double()
    mean, variance = moments(features, 4)
    torch.testing.assert_close(mean.double(), exact.mean(0), rtol=1e-6, atol=0)
    torch.testing.assert_close(variance.double(), exact.var(0, correction=0), rtol=1e-5, atol=0)
