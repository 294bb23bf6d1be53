"""The classifiers of an evaluation: listed in the order of the report, embedded once, or told why there is none."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
import torch
from fake_frames import FRAME, TASK
from fake_offers import FlatOptions, build_flat, flat, hit_rate
from finetune_oracle import DIM
from own_protocols import own_protocol

from clocs_core import Answer, NoOptions, Protocol, seeds
from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.records import Framing
from clocs_core.contracts.result_offers import Metric
from clocs_core.evaluation.classifiers import ClassifierMaker, Watch, list_classifiers
from clocs_core.evaluation.features import embed
from clocs_core.evaluation.label_fractions import choose_rows
from clocs_core.evaluation.labelled_frames import list_labelled_frames
from clocs_core.evaluation.linear import linear, prior
from clocs_core.evaluation.scoring import Scoring
from clocs_core.plan.chosen_protocol import OfferedProtocol
from clocs_core.plan.data import Chosen
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.plan.pretrained import Pretrained
from clocs_core.settings.sections import DataSettings, EvaluationSettings, FinetuneSettings, ScoringSettings
from clocs_core.train.normalise import leave

CPU = torch.device("cpu")
METRICS = (Metric(name="hits", summary="hit rate", score=hit_rate, tasks=("one_of",)),)
WATCH = Watch(itertools.count().__next__, lambda done, total: None, lambda epoch, epochs: None, pytest.fail)


@pytest.fixture(scope="module")
def frames(cohort):
    return list_labelled_frames(cohort, False, leave, CPU)


def plan(init="method", fractions=(0.5, 1.0), c=1.0, **settings):
    """The evaluation of an encoder with weights of its own."""
    torch.manual_seed(7)
    network = build_flat(FlatOptions(), 1, FRAME, DIM)
    scoring = ScoringSettings(label_fraction=fractions, C=c)
    return EvaluationPlan(
        settings=EvaluationSettings(**settings),
        data=DataSettings(),
        protocol=own_protocol(settings.get("protocol", "linear"), scoring, FinetuneSettings(epochs=1)),
        scoring=scoring,
        framing=Framing(frame_samples=FRAME),
        dataset=None,
        encoder=Pretrained(
            init=init, encoder=Chosen(flat(), FlatOptions()), embedding_dim=DIM, weights=network.state_dict()
        ),
        task=TASK,
        metrics=METRICS,
    )


def maker(frames, plan):
    return ClassifierMaker(plan, frames, Scoring(TASK, "tiny", METRICS, plan.scoring, 0), CPU, WATCH)


def test_classifiers_are_listed_by_fraction_with_the_controls_last():
    assert list_classifiers(plan(protocol="finetune")) == [
        ("finetune", "method", 0.5),
        ("finetune", "random", 0.5),
        ("prior", "random", 0.5),
        ("finetune", "method", 1.0),
        ("finetune", "random", 1.0),
        ("prior", "random", 1.0),
    ]


def test_an_untrained_encoder_is_its_own_control():
    one = plan(fractions=(1.0,))
    untrained = attrs.evolve(one, encoder=attrs.evolve(one.encoder, init="random", weights={}))
    assert list_classifiers(untrained) == [("linear", "random", 1.0), ("prior", "random", 1.0)]


def test_embeddings_are_computed_once_per_init_and_shared_by_all_fractions(frames, monkeypatch):
    calls = []

    def count(encoder, store, instances, *more):
        calls.append(len(instances))
        return embed(encoder, store, instances, *more)

    monkeypatch.setattr("clocs_core.evaluation.embedded_rows.embed", count)
    wanted = plan()
    made = maker(frames, wanted)
    found = {key: made.make(key)[0] for key in list_classifiers(wanted)}
    train, test = len(frames.parts["train"]), len(frames.whole["test"])
    held_out = len(frames.parts["validation"])  # to choose thresholds on
    assert calls == [train, test, held_out] * 2  # of the method, then of the control; none for the class prior
    made.rows.whole("method")
    assert len(calls) == 6
    half, whole = found["linear", "method", 0.5].summary, found["linear", "method", 1.0].summary
    assert (half.frames, whole.frames) == (train // 2, train)
    assert whole.patients == 4


def test_the_method_and_its_control_differ_and_the_control_follows_from_the_seed(frames):
    first, again = maker(frames, plan()), maker(frames, plan())
    method, control = (first.make(("linear", init, 1.0))[0].rows.probability for init in ("method", "random"))
    assert not np.allclose(method, control)
    np.testing.assert_array_equal(control, again.make(("linear", "random", 1.0))[0].rows.probability)
    other = maker(frames, plan(seed=1)).make(("linear", "random", 1.0))[0].rows.probability
    assert not np.allclose(control, other)


def test_c_is_as_given_or_the_best_on_validation_frames_and_is_kept_with_the_classifier(frames):
    key = ("linear", "method", 1.0)
    weak, strong = (maker(frames, plan(c=c)).make(key)[0] for c in (100.0, 0.001))
    assert (weak.summary.C, strong.summary.C) == (100.0, 0.001)
    assert np.ptp(weak.rows.probability) > np.ptp(strong.rows.probability)
    chosen = maker(frames, plan(c="auto")).make(key)[0]
    alone = maker(frames, plan(c=chosen.summary.C)).make(key)[0]
    np.testing.assert_allclose(chosen.rows.probability, alone.rows.probability, atol=1e-6)
    assert re.fullmatch(
        rf"Linear evaluation of method, F = 1: C = {chosen.summary.C:g} \(hits \d\.\d{{3}} of validation frames\)\.",
        chosen.summary.notes[-1],
    )
    assert maker(frames, plan()).make(("prior", "random", 1.0))[0].summary.C is None


def test_the_protocol_of_a_plugin_is_asked_once_for_scored_and_validation_rows(frames):
    """It may train for minutes. Thresholds are chosen on its predictions of validation rows."""
    asked = []

    def predict(_options, trial):
        asked.append(len(trial.scored))
        grown = np.exp(trial.scored.embedding[:, : len(TASK.classes)].astype(np.float64))
        return Answer(grown / grown.sum(1, keepdims=True))

    offer = Protocol(name="guess", summary="A number of the embedding.", predict=predict)
    wanted = attrs.evolve(plan(), protocol=OfferedProtocol(offer=offer, options=NoOptions()))
    found = maker(frames, wanted).make(("guess", "method", 1.0))[0].rows
    scored, held_out = (len(frames.parts[part]) for part in ("test", "validation"))
    assert asked == [scored + held_out]
    assert (len(found.probability), len(found.validation.probability)) == (scored, held_out)
    np.testing.assert_array_equal(found.validation.label, frames.rows["validation"].label)


def test_the_class_prior_knows_the_share_of_each_class_and_nothing_else(frames):
    found, network = maker(frames, plan()).make(("prior", "random", 1.0))
    share = np.bincount(frames.rows["train"].label, minlength=3) / len(frames.rows["train"])
    np.testing.assert_allclose(found.rows.probability, np.tile(share, (len(frames.parts["test"]), 1)))
    assert network is None


@pytest.mark.parametrize("of", ["frames", "patients"])
def test_a_classifier_learns_from_the_fraction_of_the_split_seed_and_from_no_other_label(frames, of):
    """All methods and seeds learn from the same labels; the class prior too, or it would know more than they do."""
    made = maker(frames, plan(fraction_of=of, seed=9))  # the split seed is 0
    chosen = choose_rows(frames.rows["train"].patient, 0.5, seeds.derive(0, "label fraction"), of)
    assert 0 < len(chosen) < len(frames.rows["train"])
    torch.manual_seed(7)
    encoder = build_flat(FlatOptions(), 1, FRAME, DIM)
    train, test = (embed(encoder, frames.store, frames.parts[part], leave, WATCH.tick) for part in ("train", "test"))
    for protocol, expected in (
        ("linear", linear(train.take(chosen), test, TASK)),
        ("prior", prior(train.take(chosen), test, TASK)),
    ):
        found = made.make((protocol, "method", 0.5))[0]
        np.testing.assert_array_equal(found.rows.probability, expected.probability, err_msg=protocol)
        assert found.summary.frames == len(chosen)


@pytest.mark.parametrize("part", ["validation", "test"])
@pytest.mark.parametrize("protocol", ["linear", "finetune", "prior"])
def test_the_part_that_is_asked_for_is_predicted(frames, protocol, part):
    """Choices are made on the validation patients; scores of the test patients would be chosen among."""
    asked = plan(protocol="linear" if protocol == "prior" else protocol, step="plain")
    asked = attrs.evolve(asked, scoring=attrs.evolve(asked.scoring, part=part))
    found = maker(frames, asked).make((protocol, "random", 1.0))[0].rows
    assert {frames.store.patients[number] for number in found.patient} == {"validation": {"p4"}, "test": {"p5"}}[part]
    np.testing.assert_array_equal(found.record, frames.rows[part].record)


@pytest.mark.parametrize("protocol", ["linear", "finetune", "prior"])
def test_a_fraction_with_one_class_has_a_note_and_no_predictions(frames, protocol):
    """Other fractions can still be scored, so this is no error."""
    found, network = maker(frames, plan(fractions=(1e-6,))).make((protocol, "method", 1e-6))
    assert network is None
    assert found.rows is None
    (note,) = found.summary.notes
    assert note.startswith("There is no score at F = 1e-06: The labelled training frames all have one class (")
    assert (found.summary.protocol, found.summary.init, found.summary.frames) == (protocol, "method", 0)


def test_fine_tuning_is_told_the_settings_and_its_network_is_given_back(frames, monkeypatch, tmp_path):
    """How it trains is tested beside it; here a fine-tuning that does nothing."""
    told = []
    rows = Predictions(*(np.zeros(1),) * 4, notes=("did not converge",))
    progress = SimpleNamespace(epoch=5, best_epoch=3)

    def nothing(encoder, frames, chosen, how):
        told.append((encoder, len(chosen), how))
        return SimpleNamespace(
            progress=progress, steps=9, predictions=rows, curve=("point",), classifier=encoder, earlier=0.0
        )

    monkeypatch.setattr("clocs_core.evaluation.classifiers.fine_tune", nothing)
    wanted = plan(protocol="finetune", seed=4, step="plain")
    found, network = maker(frames, wanted).make(("finetune", "method", 0.5), tmp_path / "kept")
    ((encoder, count, how),) = told
    assert network is encoder
    assert torch.equal(encoder.state_dict()["1.weight"], wanted.encoder.weights["1.weight"])
    assert (how.settings.epochs, how.seed, how.scored, how.embedding_dim) == (1, 4, "test", DIM)
    assert how.checkpoint == tmp_path / "kept"
    assert (found.rows, found.curve) == (rows, ("point",))
    summary = found.summary
    assert (summary.epochs, summary.best_epoch, summary.steps, summary.frames) == (5, 3, 9, count)
    assert summary.notes == ("did not converge",)
    assert summary.seconds == 1  # one tick of the clock
