"""The name of a control: labels and rows that differ must give another, whatever the files are called."""

from types import SimpleNamespace

import attrs
import pytest
import torch
from fake_frames import TASK, fake_cohort
from fake_offers import FlatOptions, TinyOptions, flat, hit_rate, tiny
from fake_recordings import CHANNELS
from own_protocols import own_protocol

from clocs_core.artifacts.split import Split
from clocs_core.contracts.records import Framing
from clocs_core.contracts.result_offers import Metric
from clocs_core.evaluation.controls import control_facts, control_name, digest_rows, is_control
from clocs_core.evaluation.labelled_frames import list_labelled_frames
from clocs_core.plan.data import Chosen
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.plan.pretrained import Pretrained
from clocs_core.settings.sections import DataSettings, EvaluationSettings, FinetuneSettings, ScoringSettings
from clocs_core.train.normalise import leave


def bench_of(folder, without=(), corrected=()):
    cohort = fake_cohort(folder, without)
    entries = [
        attrs.evolve(one, label=(one.label + 1) % 3) if one.record in corrected else one
        for one in cohort.listing.entries
    ]
    cohort = attrs.evolve(cohort, listing=attrs.evolve(cohort.listing, entries=entries))
    return list_labelled_frames(cohort, False, leave, torch.device("cpu"))


def test_a_corrected_label_gives_other_rows_and_the_same_rows_the_same(tmp_path):
    """Labels lie in a table of their own: it may change while every signal stays."""
    first, second = (bench_of(tmp_path / name) for name in ("a", "b"))
    assert digest_rows(first) == digest_rows(second)
    assert digest_rows(first) != digest_rows(bench_of(tmp_path / "c", corrected={"r0-1"}))


def test_a_label_that_is_missing_gives_other_rows(tmp_path):
    """Its frames are in no part then."""
    assert digest_rows(bench_of(tmp_path / "a")) != digest_rows(bench_of(tmp_path / "b", {"r0-0"}))


def test_controls_are_the_untrained_encoder_and_the_prior():
    """What a run trained is its own."""
    assert is_control(("finetune", "random", 0.5))
    assert is_control(("prior", "random", 1.0))
    assert not is_control(("linear", "method", 1.0))


# ---------------------------------------------------------------------------------------- all that a control depends on


def plan(protocol="finetune", **scoring):
    """An evaluation; nothing of it is run here."""
    settings = ScoringSettings(**scoring)
    return EvaluationPlan(
        settings=EvaluationSettings(dataset="tiny", encoder="flat", protocol=protocol),
        data=DataSettings(channels=CHANNELS),
        protocol=own_protocol(protocol, settings),
        scoring=settings,
        framing=Framing(frame_samples=50),
        dataset=Chosen(tiny(), TinyOptions()),
        encoder=Pretrained(init="method", encoder=Chosen(flat(), FlatOptions()), embedding_dim=5, weights={}),
        task=TASK,
        metrics=(Metric(name="hits", summary="hit rate", score=hit_rate),),
    )


def cohort_of(fingerprint="f", parts="train", channels=CHANNELS):
    split = Split({"p0": parts, "p1": "test"}, 0, "60/20/20")
    return SimpleNamespace(channels=channels, evaluate=SimpleNamespace(fingerprint=fingerprint), split=split)


def name_of(protocol="finetune", fraction=0.5, cohort=None, rows="rows", versions=(), **changes):
    """The name of a control after some changes: `data__split_seed=1` changes that field of that section."""
    scoring = {where.removeprefix("scoring__"): changes.pop(where) for where in list(changes) if "scoring__" in where}
    one = plan("finetune" if protocol == "prior" else protocol, **scoring)
    for where, value in changes.items():
        section, _, field = where.partition("__")
        one = attrs.evolve(one, **{section: attrs.evolve(getattr(one, section), **{field: value}) if field else value})
    key = (protocol, "random", fraction)
    return control_name(control_facts(key, one, cohort or cohort_of(), rows, dict(versions)))


CHANGES = [
    {"fraction": 0.25},
    {"protocol": "linear"},
    {"cohort": cohort_of(fingerprint="other files")},
    {"cohort": cohort_of(parts="validation")},
    {"cohort": cohort_of(channels=("X",))},
    {"rows": "corrected labels"},
    {"versions": {"torch": "3"}},
    {"data__split_seed": 1},  # draws the label fraction, also where a split is published
    {"settings__fraction_of": "patients"},
    {"scoring__part": "validation"},
    {"task": attrs.evolve(TASK, per="frame")},
    {"dataset": Chosen(tiny(), TinyOptions(gain=2.0))},
    {"framing": Framing(frame_samples=50, sampling_rate=200.0)},
    {"framing": Framing(frame_samples=50, notch=50.0)},
]
OF_NETWORKS = [
    {"data__normalise": "none"},
    {"data__constant": 0.2},
    {"settings__seed": 1},
    {"encoder__encoder": Chosen(flat(), FlatOptions(bias=False))},
    {"encoder__encoder": Chosen(flat("other"), FlatOptions())},
    {"encoder__embedding_dim": 6},
    {"encoder__inputs": 3},
    {"encoder__average": 4},
]
OF_TRAINING = [
    {"protocol__settings": FinetuneSettings(epochs=7)},
    {"protocol__settings": FinetuneSettings(learning_rate=0.5)},
    {"settings__step": "plain"},
    {"metrics": (Metric(name="other", summary="hit rate", score=hit_rate),)},
]


@pytest.mark.parametrize("change", [*CHANGES, *OF_NETWORKS, *OF_TRAINING], ids=", ".join)
def test_whatever_changes_a_control_changes_its_name(change):
    """Shared under one name, a control would be compared with classifiers of other labels, patients or training."""
    assert name_of(**change) != name_of()


@pytest.mark.parametrize(
    ("protocol", "changes"),
    [("linear", OF_TRAINING[2:]), ("prior", [*OF_NETWORKS, *OF_TRAINING])],  # the first two are of fine-tuning alone
    ids=["linear", "prior"],
)
def test_what_does_not_change_a_control_does_not_change_its_name(protocol, changes):
    """Else it would be made again for every evaluation; the class prior depends on no network."""
    assert {name_of(protocol, **change) for change in changes} == {name_of(protocol)}


def test_the_penalty_changes_linear_controls_alone():
    assert len({name_of("linear", scoring__C=c) for c in (1.0, 10.0, "auto")}) == 3
    assert name_of("finetune", scoring__C=10.0) == name_of("finetune")
    other = (Metric(name="misses", summary="miss rate", score=hit_rate),)
    assert name_of("linear", metrics=other) == name_of("linear")
    assert name_of("linear", metrics=other, scoring__C="auto") != name_of("linear", scoring__C="auto")
