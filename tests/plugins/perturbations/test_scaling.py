"""Scaling, and what becomes of it under normalisation."""

from __future__ import annotations

import pytest
import torch

from clocs_core import Batch, Views
from clocs_core.train.normalise import min_max
from clocs_core.train.step import ViewMaker
from clocs_plugins.perturbations.builders import build_scaling
from clocs_plugins.perturbations.options import ScalingOptions


def views_of(perturb):
    """A generator of views with one view, as MT-SSL has it, or any other."""
    return lambda batch, _: Views(signal=batch.signal.transpose(0, 1), batch=batch, perturb=perturb)


def normalised(perturb, factor):
    signal = 5 + torch.randn(3, 1, 2, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ids = torch.arange(3)
    scale = build_scaling(ScalingOptions(factor=factor), "mV")
    return ViewMaker(views_of(perturb), (scale,), normalise=min_max)(
        Batch(signal, ids, ids, ids, ids), torch.Generator()
    ).signal


def test_every_sample_is_multiplied_by_the_factor():
    signal = [0.0, 1.0, -2.0, 5.5]
    scaled = build_scaling(ScalingOptions(factor=1.5), "mV")(torch.tensor(signal), torch.Generator())
    assert scaled.tolist() == [1.5 * value for value in signal]


def test_the_default_makes_signals_a_tenth_smaller():
    scaled = build_scaling(ScalingOptions(), "")(torch.ones(3, dtype=torch.float64), torch.Generator())
    assert scaled.tolist() == [0.9, 0.9, 0.9]


def test_a_view_that_is_normalised_by_itself_hides_the_scale():
    """What the help of the option warns of."""
    torch.testing.assert_close(normalised("every", 0.3), normalised("every", 1.0), atol=1e-6, rtol=0)


def test_a_view_of_its_own_keeps_the_scale_of_the_clean_one():
    """Or MT-SSL would ask its network for a difference that is not there."""
    clean, scaled = normalised("one each", 0.9)
    assert clean.amin().item() == pytest.approx(0)
    assert clean.amax().item() == pytest.approx(1)
    torch.testing.assert_close(scaled.amax(-1) - scaled.amin(-1), torch.full((3, 2), 0.9).double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_that_is_none_is_refused(factor):
    """A negative one is the work of flip_x."""
    with pytest.raises(ValueError, match="factor must be positive and finite, got"):
        ScalingOptions(factor=factor)
