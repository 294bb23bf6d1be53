"""Gaussian noise: how much, where from, and in which unit."""

from __future__ import annotations

import pytest
import torch

from clocs_core import SettingsError
from clocs_plugins.perturbations.builders import build_gaussian
from clocs_plugins.perturbations.options import GaussianOptions


def perturb(signal, unit="mV", seed=0, **options):
    return build_gaussian(GaussianOptions(**options), unit)(signal, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("unit", "sigma"),
    [("µV", 10), ("μV", 10), ("uV", 10), ("mV", 0.01), ("mv", 0.01), (" mV ", 0.01), ("V", 1e-5), ("nV", 1e4)],
)
def test_the_default_is_10_microvolts_in_any_voltage(unit, sigma):
    """The paper's 10 (Chapman, µV) and 0.01 (mV) are one size; 10 mV of noise would bury an ECG."""
    noise = perturb(torch.zeros(40, 2500, dtype=torch.float64), unit)
    assert noise.std().item() == pytest.approx(sigma, rel=0.02)
    assert abs(noise.mean().item()) < 0.02 * sigma


@pytest.mark.parametrize("unit", ["", "counts", "NU", "mmHg"])
def test_a_unit_without_a_magnitude_gets_noise_by_the_signal(unit):
    """Raw counts may be of any size, so the noise follows each signal."""
    signal = torch.randn(2, 50_000, generator=torch.Generator().manual_seed(1)) * torch.tensor([[1.0], [1000.0]])
    noise = perturb(signal, unit) - signal
    torch.testing.assert_close(noise.std(-1), 0.07 * signal.std(-1), rtol=0.03, atol=0)


def test_sigma_is_in_the_units_of_the_signal():
    """Whatever the unit is called."""
    for unit in ("µV", "mV", "counts"):
        assert perturb(torch.zeros(100_000), unit, sigma=2.5).std().item() == pytest.approx(2.5, rel=0.02)


def test_relative_is_a_fraction_of_each_signals_own_deviation():
    """Each signal by itself, offsets aside; a flat one stays flat and is not NaN."""
    size = torch.tensor([[1.0], [50.0], [0.0]])
    signal = 9 + size * torch.randn(3, 50_000, generator=torch.Generator().manual_seed(2))
    noise = perturb(signal, relative=0.2) - signal
    torch.testing.assert_close(noise[:2].std(-1), 0.2 * signal[:2].std(-1), rtol=0.03, atol=0)
    assert (noise[2] == 0).all()


@pytest.mark.parametrize("options", [{"sigma": 0.0}, {"relative": 0.0}])
def test_no_noise_is_no_change(options):
    """The way to switch it off in a sweep."""
    signal = torch.randn(2, 30)
    assert torch.equal(perturb(signal, **options), signal)


def test_all_noise_comes_from_the_generator():
    """The same generator gives the same noise, another gives another, and the global one is left alone."""
    signal = torch.randn(4, 1, 100)
    before = torch.random.get_rng_state()
    first = perturb(signal, seed=5)
    assert torch.equal(first, perturb(signal, seed=5))
    assert not torch.equal(first, perturb(signal, seed=6))
    assert torch.equal(before, torch.random.get_rng_state())


def test_every_sample_of_every_signal_has_noise_of_its_own():
    """Two views with the same noise would be told apart by nothing."""
    noise = perturb(torch.zeros(2, 3, 4, 50))
    assert noise.unique().numel() == noise.numel()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(7,), (2, 7), (2, 3, 1, 7)])
def test_shape_type_and_the_signal_itself_are_kept(shape, dtype):
    """Batches are shared with the store: the argument is not written to."""
    signal = torch.ones(shape, dtype=dtype)
    perturbed = perturb(signal, relative=0.1)
    assert (perturbed.shape, perturbed.dtype) == (signal.shape, signal.dtype)
    perturb(signal, sigma=1.0)
    assert (signal == 1).all()


def test_two_strengths_are_refused():
    """One would win in silence."""
    with pytest.raises(SettingsError, match=r"both sigma=1.0 and relative=0.5; give one"):
        GaussianOptions(sigma=1.0, relative=0.5)


@pytest.mark.parametrize("wrong", [{"sigma": -1.0}, {"relative": float("nan")}, {"sigma": float("inf")}])
def test_a_strength_that_is_none_is_refused(wrong):
    """By the option's name."""
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be zero or more, and finite, got"):
        GaussianOptions(**wrong)
