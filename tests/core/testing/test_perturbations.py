"""Perturbations that know more of the signals than their unit: rate, channels, and the axis of the channels."""

from __future__ import annotations

import flawed_offers as fake
import pytest
import torch

from clocs_core import NoOptions, Perturbation, SignalFacts
from clocs_core.testing import checks_of, failures


def test_a_perturbation_that_needs_the_rate_passes_every_check():
    """Also one that refuses signals of unknown rate, with a sentence."""
    assert failures(checks_of(fake.HUM)) == {}


def test_it_is_built_from_the_facts_of_the_signals():
    facts = SignalFacts(unit="uV", frame_rate=200.0, samples=8, channels=("I", "II"), channel_axis=-2)
    signal = torch.zeros(3, 2, 8)
    found = fake.HUM.make(fake.Flaw(), facts)(signal, torch.Generator().manual_seed(0))
    assert not found[:, 0].any()  # the first channel has no hum
    at_50 = torch.sin(2 * torch.pi * 50 * torch.arange(8) / 200)
    assert torch.allclose(found[:, 1] / found[:, 1, 1:2], at_50.expand(3, -1), atol=1e-5)


def test_an_earlier_one_gets_the_unit_as_before():
    heard = []
    offer = Perturbation(name="old", summary="s", build=lambda options, unit: heard.append((options, unit)))
    offer.make("options", SignalFacts(unit="mV"))
    assert heard == [("options", "mV")]


@pytest.mark.parametrize("ways", [{}, {"build": print, "build_for": print}])
def test_it_is_built_in_one_way(ways):
    with pytest.raises(ValueError, match="must have either `build` or `build_for`"):
        Perturbation(name="odd", summary="s", **ways)


def test_one_that_works_at_one_rate_only_is_noticed():
    facts = [one for one in checks_of(fake.HUM, options=fake.Flaw("one-rate")) if one.name == "signal-facts"]
    assert len(failures(facts)) == 1


def build_sum(_options: NoOptions, signals: SignalFacts):
    """Add V6 to every lead, with a random weight; refuse signals without it, or of one channel."""
    if "V6" not in signals.channels or signals.channel_axis is None:
        raise ValueError("it needs V6 beside the other leads")
    place = signals.channels.index("V6")

    def add(signal, generator):
        weight = torch.rand((*signal.shape[:-2], 1, 1), generator=generator, device=signal.device)
        return signal + weight.to(signal.dtype) * signal[..., place : place + 1, :]

    return add


def test_one_that_needs_leads_by_name_is_checked_with_twelve_of_them_together():
    """Refusing other signals with a sentence is its right, and no fault."""
    offer = Perturbation(name="sum", summary="s", build_for=build_sum)
    assert failures(checks_of(offer)) == {}


def test_one_that_refuses_every_signal_is_noticed():
    def refuse(_options, _signals):
        raise ValueError("never")

    found = failures(checks_of(Perturbation(name="no", summary="s", build_for=refuse)))
    assert any("units" in name for name in map(str, found))
