"""The recordings that a network from a file reads, and what it warns of."""

from __future__ import annotations

import pytest
from fake_encoders import fake_card
from fake_offers import PARITY, TinyOptions, tiny

from clocs_core.artifacts.card import EncoderCard
from clocs_core.contracts.records import Framing
from clocs_core.errors import DataError
from clocs_core.plan.data import Chosen, DataPlan
from clocs_core.plan.target import Target, known_channels, warn_of_signals, warn_of_split
from clocs_core.progress import Display
from clocs_core.settings.sections import DataSettings


class Told(Display):
    def __init__(self):
        self.warnings = []

    def warn(self, text):
        self.warnings.append(text)


def card(**fields):
    return fake_card(
        EncoderCard,
        method="m",
        count=1,
        pretrain_framing=Framing(),
        **{"channels": ("left",), "modality": "wave"} | fields,
    )


def target(own):
    plan = DataPlan(Chosen(tiny(), TinyOptions()), DataSettings(), PARITY)
    return Target(plan, Framing(frame_samples=100), own)


def test_channels_are_those_of_the_network_or_those_asked_for():
    assert known_channels(card(), tiny(), DataSettings()).channels == ("left",)
    assert known_channels(card(), tiny(), DataSettings(channels=("both",))).channels == ("right", "left")
    with pytest.raises(DataError, match="Data set 'tiny' has no channel 'up'"):
        known_channels(card(channels=("up",)), tiny(), DataSettings())
    asked = DataSettings(channels=("anything",))
    assert known_channels(card(), tiny(channels=(), presets={}), asked) is asked  # only the files know them


def test_another_split_is_a_warning_on_its_own_data_set_only():
    told = Told()
    warn_of_split(card(split_hash="a"), target(own=True), "a", told)
    warn_of_split(card(split_hash="a"), target(own=False), "b", told)
    assert told.warnings == []
    warn_of_split(card(split_hash="a"), target(own=True), "b", told)
    assert "divided otherwise than when the encoder was trained" in told.warnings[0]


def test_signals_of_another_kind_are_a_warning():
    told = Told()
    warn_of_signals(card(), target(own=False), told)
    warn_of_signals(card(modality="ecg"), target(own=False), told)
    assert told.warnings == ["the encoder was trained on signals of kind 'ecg', and these are 'wave'"]
