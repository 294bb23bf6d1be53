"""The story of a run, from its recordings to its report: who is trained on, which weights are kept, what is told.

One small data set has everything that a report must mention: a recording that the scan drops, one with a flat channel,
one that is too short, and one that was published twice, in two parts. Pictures and the page are left out.
"""

from __future__ import annotations

import json
from itertools import count
from types import SimpleNamespace

import attrs
import pytest
import torch
from fake_offers import offers, tiny, tiny_load
from fake_plugins import fake_point
from fake_recordings import recordings_in_memory
from fake_runs import ARGUMENTS

import clocs_core as clocs
from clocs_core.artifacts.run_keeper import RunKeeper
from clocs_core.contracts.events import Health, Listener
from clocs_core.contracts.records import Drop, Entry, Listing
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import load_plugins
from clocs_core.progress import Display
from clocs_core.train import health, loop
from clocs_core.workflows import encoders, pretrain, saving
from clocs_core.workflows.pretrain import pretrain_run
from clocs_core.workflows.summary import part_notes
from clocs_core.workflows.surroundings import Surroundings
from clocs_core.workflows.training import patients_of, prepare_run, train_run

PART_OF = ("train",) * 7 + ("validation",) * 3 + ("test",) * 4
PARTS = {f"p{number}": part for number, part in enumerate(PART_OF)}
TRAINED = {patient for patient, part in PARTS.items() if part == "train"}


def scan(_root, _task, _options):
    """Patient n has one, two or three recordings; the scan leaves out one more."""
    entries = [Entry(f"p{n}-{visit}", f"p{n}", n % 2) for n in range(14) for visit in range(1 + n % 3)]
    return Listing(entries, (Drop("no diagnosis", "lost"),), parts=PARTS)


def load(entry, options):
    """Recording p1-0 has a flat channel, p2-0 is short, and p10-0 is p0-0 under another name."""
    if entry.record == "p10-0":
        entry = attrs.evolve(entry, record="p0-0", patient="p0")
    record = tiny_load(entry, options)
    if entry.record == "p1-0":
        record.samples[1] = 0.5
    if entry.record == "p2-0":
        record = attrs.evolve(record, samples=record.samples[:, :30])
    return record


class Told(Display):
    """A display that keeps what it is told."""

    def __init__(self):
        self.said, self.warned = [], []

    def say(self, text):
        self.said.append(text)

    def warn(self, text):
        self.warned.append(text)


class Kept(RunKeeper):
    """A keeper that has the weights which a run wants to keep."""

    def keep_encoder(self, weights, card, name=""):
        self.weights = {name: tensor.clone() for name, tensor in weights.items()}


def plan_of(folder, *assignments):
    hooks = offers() | {"clocs_datasets": lambda: [tiny(scan=scan, load=load)]}
    catalogue, host = build_catalogue(load_plugins([fake_point("fakes", **hooks)]))
    tables = {
        "run": {"method": "together", "dataset": "tiny", "embedding_dim": 8, "device": "cpu"},
        "data": {"data_root": str(folder / "data")},
        "evaluate": {"resamples": 5, "permutations": 5},
    }
    return resolve(catalogue, tables, assignments), host


def surroundings(host, *listeners):
    ticking = count()
    return Surroundings(host, Told(), clock=lambda: float(next(ticking)), listeners=listeners)


def names(store, instances):
    """The patients of some instances, by name."""
    return {store.patients[number] for number in patients_of(store, instances).tolist()}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_the_parts_of_a_run_are_those_of_the_split(tmp_path):
    """Early stopping on the test patients would choose the weights that score best on them."""
    plan, host = plan_of(tmp_path, "epochs=1")
    around = surroundings(host)
    trained = train_run(prepare_run(plan, around), RunKeeper(), around, False).training
    assert names(trained.store, trained.train) == TRAINED
    assert names(trained.store, trained.validation) == {"p7", "p8", "p9"}


def test_a_limit_of_instances_chooses_the_same_ones_for_every_seed_of_the_run(tmp_path):
    """Seeds of one experiment are compared with each other: they must see the same instances, of the same split."""
    chosen = []
    for assignments in (("seed=0",), ("seed=1",), ("seed=0", "split_seed=1")):
        plan, host = plan_of(tmp_path, "epochs=1", "instances=9", *assignments)
        around = surroundings(host)
        trained = train_run(prepare_run(plan, around), RunKeeper(), around, False).training
        chosen.append(torch.cat([trained.train.frame, trained.train.channel], 1).tolist())
        assert names(trained.store, trained.train) == TRAINED
    assert len(chosen[0]) == 9
    assert chosen[0] == chosen[1] != chosen[2]


def test_a_total_of_steps_sets_the_length_of_a_run_whatever_its_validation_loss_does(tmp_path):
    """Methods with other numbers of instances then take equally many steps, as far as whole epochs allow."""
    plan, host = plan_of(tmp_path, "total_steps=7", "epochs=400", "patience=1", "instances=9", "batch_size=4")
    around = surroundings(host)
    ready = prepare_run(plan, around)
    train_run(ready, RunKeeper(), around, False)
    assert (ready.plan.train.epochs, ready.learner.progress.epoch) == (2, 2)  # of three steps


class End(Listener):
    def run_done(self, run, done):
        self.done = done


RANKS = (5.0, *[1.0] * 9, 5.0, *[1.0] * 12)
"""The effective rank after each epoch: collapsed but for the first, and for one after nine collapsed ones."""
BEST = 2


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A whole run, with its keeper, all its weights, those it evaluated, and what it told.

    The validation loss is lowest after epoch 2, so that the best weights are not the last ones.
    """
    seen, evaluated, end = {}, [], End()
    whole, validate = encoders.score_own_encoder, loop.validate

    def watch(learner, path, *more):
        seen[learner.progress.epoch] = {name: one.clone() for name, one in learner.encoders.state_dict().items()}

    def lowest_after_the_best(run_epoch, learner, training, whole):
        _, *more = validate(run_epoch, learner, training, whole)
        return torch.tensor(abs(learner.progress.epoch + 1.0 - BEST)), *more

    def score(plan, *more):
        evaluated.append(plan.encoder.weights)
        return whole(plan, *more)

    ranks = iter(RANKS)
    folder = tmp_path_factory.mktemp("story")
    plan, host = plan_of(folder, f"epochs={len(RANKS)}", "batch_size=64", "patience=99")
    around, keeper = surroundings(host, end), Kept()
    keeper.checkpoint = folder / "checkpoint"
    with pytest.MonkeyPatch.context() as patch:
        for longer_than_the_run in ("_begin_training_pictures", "_begin_result_pictures", "render"):
            patch.setattr(pretrain, longer_than_the_run, lambda *_: "")
        patch.setattr(encoders, "score_own_encoder", score)
        patch.setattr(saving, "save_checkpoint", watch)
        patch.setattr(loop, "validate", lowest_after_the_best)
        patch.setattr(health, "judge", lambda *_: Health(next(ranks), 8, 0.5, 0.1, 1.0))
        run = pretrain_run(plan, keeper, around)
    return SimpleNamespace(
        run=run, report=run.report, kept=keeper.weights, seen=seen, evaluated=evaluated, done=end.done, show=around.show
    )


def test_the_best_weights_are_kept_evaluated_and_returned(story):
    best = story.seen[BEST]
    assert (story.report.best_epoch, story.report.epochs_run) == (BEST, len(RANKS))
    assert not same(best, story.seen[len(RANKS)])
    assert same(story.kept, best)
    assert same(story.run.encoders[0].saved, best)
    assert same({f"0.{name}": one for name, one in story.evaluated[0].items()}, best)


def test_the_report_has_every_drop_every_twin_and_every_part(story):
    """The scan, the framing and the method each leave something out; none may hide it."""
    report = story.report
    assert report.drops.counts == {"no diagnosis": 1, "flat": 8, "fewer than 2 frames in a row": 1}
    assert report.split.records == {"train": 13, "validation": 6, "test": 8}
    assert report.split.patients == {"train": 7, "validation": 3, "test": 4}
    assert report.split.duplicate_signals == 1
    assert [note for note in report.notes if "share a signal, such as p0-0 (train) and p10-0 (test)" in note]
    assert (report.exposure.patients, report.exposure.instances) == (7, 12 * 4 * 2 - 4)
    assert report.exposure.steps == len(RANKS) * 2


def test_embeddings_are_told_with_their_own_recordings(story):
    rows = story.done.embeddings
    assert set(rows.patient) == {"p10", "p11", "p12", "p13"}
    assert [record.rpartition("-")[0] for record in rows.record] == list(rows.patient)
    assert set(zip(rows.patient, rows.label, strict=True)) == {
        ("p10", "even"), ("p11", "odd"), ("p12", "even"), ("p13", "odd"),
    }  # fmt: skip


def test_the_card_describes_the_frames_of_the_evaluation(story):
    """Pre-training of two segments works at 200 Hz here; an encoder is used on frames like those of its scores."""
    card = story.run.encoders[0].card
    assert (card.frame_rate, card.framing.sampling_rate, card.pretrain_framing.sampling_rate) == (100.0, None, 200.0)


def test_a_collapse_is_warned_of_once_after_ten_epochs_and_noted_at_the_end(story):
    """One that recovers in between is counted from the beginning; what is noted is the state at the end."""
    (warned,) = story.show.warned
    assert warned.startswith("epoch 21: the embeddings look collapsed: effective rank 1.0 of 8")
    (noted,) = [note for note in story.report.notes if "collapsed" in note]
    assert noted.startswith("At the end of training the embeddings look collapsed: effective rank 1.0 of 8")


def test_a_resumed_run_goes_on_after_its_checkpoint_and_drops_what_came_later(tmp_path, monkeypatch, no_pictures):
    """A kill between the line of an epoch and its checkpoint leaves a line too many."""
    save = saving.save_checkpoint
    how = ARGUMENTS | {"epochs": 4, "out": tmp_path / "run"}

    def killed(learner, path, *more):
        if learner.progress.epoch == 3:
            raise KeyboardInterrupt
        save(learner, path, *more)

    monkeypatch.setattr(saving, "save_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        clocs.pretrain("cmsc", recordings_in_memory(), **how)
    monkeypatch.setattr(saving, "save_checkpoint", save)
    resumed = clocs.pretrain("cmsc", recordings_in_memory(), **how)
    assert resumed.history["epoch"] == [1, 2, 3, 4]
    kept = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["epoch"] for line in kept] == [1, 2, 3, 4]


def test_scores_of_the_validation_part_are_called_no_test():
    """Choices are made on it, so its scores are too good."""
    assert part_notes("test") == ()
    (note,) = part_notes("validation")
    assert note.endswith("they are no test.")
