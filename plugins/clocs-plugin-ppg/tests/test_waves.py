"""Perturbations of the pulse wave: the change is slow, short or proportional, as documented."""

from __future__ import annotations

import torch

from clocs_plugin_ppg.perturbations.waves import drift, modulate, shake

SAMPLES = 500


def pulse(signals: int = 64) -> torch.Tensor:
    """Make waves (signal, sample) of 20 cycles per frame, of different size, around 10."""
    time = torch.arange(SAMPLES, dtype=torch.float64) / SAMPLES
    size = torch.arange(1, signals + 1, dtype=torch.float64)[:, None]
    return 10 + size * torch.sin(2 * torch.pi * 20 * time)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_drift_adds_slow_waves_in_proportion_to_each_signal():
    """With at most two cycles per frame, the added wave has a bounded slope."""
    signal = pulse()
    added = drift(signal, seeded(), strength=0.5, cycles=2.0) - signal
    limit = 0.5 * signal.std(-1, correction=0)
    assert (added.abs().amax(-1) <= limit + 1e-9).all()
    assert (added.abs().amax(-1) > 0.1 * limit).float().mean() > 0.9
    jump = added.diff(dim=-1).abs().amax(-1)
    assert (jump <= 2 * torch.pi * 2 / SAMPLES * limit + 1e-9).all()
    assert not torch.allclose(added[0] / limit[0], added[1] / limit[1], atol=0.01)


def test_modulation_multiplies_the_distance_from_the_mean_by_a_slow_factor():
    """At its mean the signal does not change; elsewhere it changes slowly, by up to the depth."""
    signal = pulse()
    mean = signal.mean(-1, keepdim=True)
    away = (signal - mean).abs() > 0.5
    factor = (modulate(signal, seeded(), depth=0.3, cycles=4.0) - mean)[away] / (signal - mean)[away]
    assert factor.min() >= 0.7 - 1e-9
    assert factor.max() <= 1.3 + 1e-9
    assert factor.max() - factor.min() > 0.5
    whole = modulate(signal, seeded(), depth=0.3, cycles=4.0)
    assert torch.allclose(whole[~away], signal[~away], atol=0.5)


def test_motion_is_one_short_burst_within_the_frame():
    """Samples outside the burst do not change."""
    signal = pulse()
    moved = shake(signal, seeded(), strength=1.0, length=0.2, cycles=20.0)
    starts = []
    for before, after in zip(signal.tolist(), moved.tolist(), strict=True):
        changed = [at for at in range(SAMPLES) if after[at] != before[at]]
        if changed:
            assert changed[-1] - changed[0] < 0.2 * SAMPLES
            starts.append(changed[0])
    assert ((moved - signal).abs().amax(-1) <= signal.std(-1, correction=0) + 1e-9).all()
    assert len(starts) > 55
    assert min(starts) < 50
    assert max(starts) > 350


def test_flat_signals_stay_flat_and_strength_zero_changes_nothing():
    """A detached lead must not look like a pulse."""
    flat, signal = torch.full((3, SAMPLES), 4.0), pulse(3)
    for perturb in (
        lambda x, size: drift(x, seeded(), strength=size, cycles=2.0),
        lambda x, size: modulate(x, seeded(), depth=size, cycles=2.0),
        lambda x, size: shake(x, seeded(), strength=size, length=0.2, cycles=9.0),
    ):
        assert torch.allclose(perturb(flat, 0.5), flat)
        assert torch.allclose(perturb(signal, 0.0), signal)
