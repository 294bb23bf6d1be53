"""A protocol with its settings: its classifiers, its words, and what its controls depend on."""

from __future__ import annotations

import pytest
from fake_frames import TASK
from fake_offers import hit_rate
from own_protocols import own_protocol

from clocs_core import Answer, NoOptions, Protocol
from clocs_core.contracts.result_offers import OWN_PROTOCOLS, Metric
from clocs_core.plan.chosen_protocol import choose_protocol
from clocs_core.plan.data import Chosen
from clocs_core.settings.sections import FinetuneSettings, ScoringSettings

HITS = (Metric(name="hits", summary="hit rate", score=hit_rate),)
GUESS = choose_protocol(
    Chosen(
        Protocol(name="guess", summary="A guess.", predict=lambda options, trial: Answer(trial.scored.embedding)),
        NoOptions(),
        "oracle",
    ),
    ScoringSettings(),
    FinetuneSettings(),
)
EVERY = {**{name: own_protocol(name) for name in OWN_PROTOCOLS}, "guess": GUESS}


@pytest.mark.parametrize("name", ["linear", "linear-record", "finetune", "guess"])
def test_a_protocol_that_learns_has_the_class_prior_as_its_last_control_at_every_fraction(name):
    assert EVERY[name].learns
    assert EVERY[name].classifiers(("method", "random"), (0.5, 1.0)) == [
        (name, "method", 0.5), (name, "random", 0.5), ("prior", "random", 0.5),
        (name, "method", 1.0), (name, "random", 1.0), ("prior", "random", 1.0),
    ]  # fmt: skip


def test_patients_are_identified_once_and_by_chance():
    """No label is used, so that there is neither a label fraction nor a class prior."""
    one = EVERY["patient-identification"]
    assert not one.learns
    assert one.classifiers(("method", "random"), (0.5, 1.0)) == [
        ("patient-identification", "method", 1.0),
        ("patient-identification", "random", 1.0),
        ("chance", "chance", 1.0),
    ]


def test_every_classifier_has_words_for_the_display():
    said = {name: [one.say(key) for key in one.classifiers(("cmsc",), (0.25,))] for name, one in EVERY.items()}
    assert said == {
        "linear": ["linear evaluation of cmsc, F = 0.25", "class prior, F = 0.25"],
        "linear-record": ["linear evaluation of recordings by cmsc, F = 0.25", "class prior, F = 0.25"],
        "finetune": ["fine-tuning cmsc, F = 0.25", "class prior, F = 0.25"],
        "patient-identification": ["patient identification by cmsc", "chance"],
        "guess": ["guess on cmsc, F = 0.25", "class prior, F = 0.25"],
    }


def test_only_fine_tuning_keeps_networks_and_none_of_the_class_prior():
    kept = {key for one in EVERY.values() for key in one.classifiers(("cmsc", "random"), (1.0,)) if one.trains(key)}
    assert kept == {("finetune", "cmsc", 1.0), ("finetune", "random", 1.0)}


def test_every_protocol_says_what_it_does():
    share = "a share F of the labelled training frames"
    said = {name: one.sentence(TASK, share, "validation") for name, one in EVERY.items()}
    assert all(share in said[name] for name in EVERY if EVERY[name].learns)
    assert "a logistic regression (L2, C = 1) on its standardised representations is fitted to" in said["linear"]
    assert "(L2, C = 1) on the standardised means of its representations of each recording" in said["linear-record"]
    assert "The first recording of each validation patient, by name, is in a gallery" in said["patient-identification"]
    assert said["guess"] == f"A guess; it learns from {share}."
    chosen = own_protocol("linear", ScoringSettings(C="auto")).sentence(TASK, share, "test")
    assert "(L2, C by the scores of validation patients)" in chosen
    decayed = own_protocol("finetune", finetune=FinetuneSettings(layer_decay=0.5)).sentence(TASK, share, "test")
    assert ", times 0.5 from each block to the one before it, batches of 256" in decayed


def test_settings_and_facts_are_those_that_a_protocol_reads():
    """A control is shared under these facts: one more would make it again, one less would share a wrong one."""
    tables = {name: set(one.tables()) for name, one in EVERY.items()}
    facts = {name: set(one.facts(HITS, "plain")) for name, one in EVERY.items()}
    nothing = {"linear": set(), "linear-record": set(), "patient-identification": set()}
    assert tables == {**nothing, "finetune": {"finetune"}, "guess": {"protocol"}}
    assert facts == {
        "linear": {"C"}, "linear-record": {"C"}, "finetune": {"finetune", "step", "metrics"},
        "patient-identification": set(), "guess": {"options"},
    }  # fmt: skip
    auto = own_protocol("linear", ScoringSettings(C="auto")).facts(HITS, "plain")
    assert auto == {"C": "auto", "metrics": ["hits"]}
    assert GUESS.facts(HITS, "plain") == {"options": {"owner": "oracle"}}
