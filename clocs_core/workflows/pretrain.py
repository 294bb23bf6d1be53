"""Run a plan: prepare recordings, pre-train, save the encoder, evaluate it beside its controls, report.

This is the only caller of the event hooks. The input is a plan, the output a finished run; the keeper writes files.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import torch
from torch import Tensor

from clocs_core import seeds
from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.metrics import EpochRow, row_of
from clocs_core.artifacts.predictions import PredictedRows, predicted_rows
from clocs_core.artifacts.reports import Report
from clocs_core.artifacts.run_keeper import RunKeeper
from clocs_core.artifacts.split import PARTS
from clocs_core.contracts.events import Health, RunDone, RunStarted
from clocs_core.contracts.records import DropReport, Part
from clocs_core.data.audit import Audit, certified_audit
from clocs_core.data.cohort import Cohort, get_cohort
from clocs_core.data.exposure import expose, limit_instances
from clocs_core.data.store import Instances, Store, fill_store, list_instances
from clocs_core.errors import DataError, SettingsError
from clocs_core.evaluation.classifiers import Watch
from clocs_core.evaluation.own_encoder import Scored, score_own_encoder
from clocs_core.plan.evaluation import own_evaluation
from clocs_core.plan.pretraining import Plan, refuse_too_few
from clocs_core.progress import Display, collect_warnings
from clocs_core.report.page import render
from clocs_core.report.pictures import draw_pictures
from clocs_core.settings.options import plain
from clocs_core.train.build import build_learner, build_views, choose_device, choose_epochs
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.epochs import RunEpoch, Training, equal_views, pairs_per_anchor
from clocs_core.train.learner import Learner
from clocs_core.train.loop import train_epochs
from clocs_core.train.profiling import StepProfiler, profile_lines
from clocs_core.workflows.environment import environment
from clocs_core.workflows.summary import (
    draw_views,
    leak_notes,
    name_embeddings,
    part_notes,
    summarise_distances,
    summarise_retrieval,
    summarise_split,
)
from clocs_core.workflows.surroundings import Surroundings

_ALARMS = 10  # collapsed epochs in a row before a warning: early epochs often look collapsed, and recover


@attrs.frozen(eq=False)
class FinishedRun:
    """A finished run: its report, its epochs, its predictions, and its best encoders with their card."""

    report: Report
    history: tuple[EpochRow, ...]
    predictions: PredictedRows | None
    weights: Mapping[str, Tensor]
    card: EncoderCard


@attrs.frozen(eq=False)
class _Ready:
    """A plan with prepared recordings and an untrained learner."""

    plan: Plan
    cohort: Cohort
    instances: dict[Part, Instances]
    drops: DropReport
    leaks: Audit
    learner: Learner
    run_epoch: RunEpoch
    device: torch.device


@attrs.frozen(eq=False)
class _Trained:
    """The epochs of a run, the instances and the frames that it was trained on, and the warnings it raised."""

    history: tuple[EpochRow, ...]
    run: RunStarted
    training: Training
    warnings: tuple[str, ...]


def pretrain_run(plan: Plan, keeper: RunKeeper, around: Surroundings, profile: bool = False) -> FinishedRun:
    """Pre-train, evaluate and report; resume from the keeper's folder if it has a checkpoint.

    The folder is created once the recordings are known to be usable, so that a mistake leaves no files.
    profile: measure where the time of a training step goes, and show it.
    """
    clock, show = around.clock, around.show
    began = clock()
    with keeper.open():
        ready = _prepare(plan, around)
        keeper.begin(ready.plan.tables(), ready.cohort.split)
        prepared = clock()
        show.stage("pre-training")
        trained = _train(ready, keeper, around, profile)
        card = _card(ready, environment(ready.device, around.host))
        keeper.keep_encoder(ready.learner.best, card)
        pretrained = clock()
        show.stage("evaluating")
        scored = _evaluate(ready, around)
        store = scored.frames.store
        keeper.keep_predictions(scored.evaluation.predicted, store.patients, store.records)
        report = _report(ready, trained, scored, card, show)
        seconds = {"prepare": prepared - began, "pretrain": pretrained - prepared, "evaluate": clock() - pretrained}
        report = attrs.evolve(report, seconds=seconds)
        done = _done(ready, trained, scored, report)
        keeper.finish(report, render(report, trained.history, done.pictures))
        around.done(trained.run, done)
    predictions = predicted_rows(scored.evaluation.predicted, store.patients, store.records)
    card = attrs.evolve(card, scores=report.scores)
    return FinishedRun(report, trained.history, predictions, ready.learner.best, card)


# -------------------------------------------------------------------------------------------------- prepare recordings


def _prepare(plan: Plan, around: Surroundings) -> _Ready:
    show = around.show
    device = choose_device(plan.run.device)
    run_epoch = choose_epochs(plan, device, show.warn)  # fail before reading anything
    show.stage("preparing recordings")
    cohort = get_cohort(plan.recordings, plan.pretrain_framing, plan.evaluate_framing, around.workers, show.tick)
    plan = attrs.evolve(plan, task=cohort.task, data=attrs.evolve(plan.data, channels=cohort.channels))
    refuse_too_few(plan.method, plan.needs, cohort.channels, plan.dataset.offer)
    instances, drops = _instances(plan, cohort, device)
    learner = build_learner(plan, len(cohort.channels), device)
    show.say(_found(plan, cohort, instances, drops))
    leaks = certified_audit(cohort.evaluate, cohort.split)
    tolerated = cohort.evaluate.tolerated
    put_up_with = (f"read despite faults: {tolerated.reasons()}",) if tolerated.counts else ()
    for note in (*cohort.listing.notes, *put_up_with, leaks.sentence()):
        show.say(note)
    return _Ready(plan, cohort, instances, drops, leaks, learner, run_epoch, device)


def _instances(plan: Plan, cohort: Cohort, device: torch.device) -> tuple[dict[Part, Instances], DropReport]:
    """Return the method's instances in each part, and all recordings and frames that were dropped."""
    needs = plan.needs
    drops = DropReport.of(cohort.listing.drops) + cohort.pretrain.drops
    instances: dict[Part, Instances] = {}
    for part in PARTS:
        instances[part], short = list_instances(
            cohort.pretrain,
            frozenset(cohort.split.patients(part)),
            cohort.channels,
            needs.segments,
            needs.channels == "all",
            device,
        )
        drops = drops + DropReport.of(short)
        if part != "test" and not len(instances[part]):
            raise DataError(
                f"Method {plan.method.name!r} contrasts {needs.segments} frames in a row of "
                f"{plan.pretrain_framing.frame_samples} samples, and no recording of the {part} patients has them; "
                "use shorter frames (`frame_samples=...`) or a method that needs fewer."
            )
    return instances, drops


def _found(plan: Plan, cohort: Cohort, instances: dict[Part, Instances], drops: DropReport) -> str:
    entries, patients = len(cohort.listing.entries), len(cohort.split.parts)
    counts = " / ".join(f"{n:,}" for n in cohort.split.counts().values())
    each = " / ".join(f"{len(instances[part]):,}" for part in PARTS)
    form = f" ({cohort.listing.form})" if cohort.listing.form else ""
    return (
        f"{plan.dataset.offer.name}{form}: {entries:,} recordings of {patients:,} patients, "
        f"{counts} to train / validate / test; instances {each}; {drops.sentence()}"
    )


# ----------------------------------------------------------------------------------------------------------- pre-train


def _train(ready: _Ready, keeper: RunKeeper, around: Surroundings, profile: bool) -> _Trained:
    """Train the learner, from the checkpoint if there is one. Changes the learner, which keeps its best weights."""
    plan, cohort, learner, show = ready.plan, ready.cohort, ready.learner, around.show
    profiler = _profiler(keeper, ready.device) if profile else None
    store = fill_store(cohort.pretrain, cohort.labels, plan.task, cohort.channels, ready.device)
    training = Training(
        store=store,
        make_views=build_views(plan, cohort.pretrain.unit),
        train=_limit(plan, store, ready.instances["train"], show),
        validation=ready.instances["validation"],
        settings=plan.train,
        seed=plan.run.seed,
    )
    if keeper.checkpoint is not None and keeper.checkpoint.exists():
        load_checkpoint(learner, keeper.checkpoint)
        show.say(f"resuming after epoch {learner.progress.epoch}")
    rows = keeper.rows_until(learner.progress.epoch)
    first = learner.progress.epoch + 1
    run = RunStarted(keeper.path, plan.method.name, plan.dataset.offer.name, plan.tables(), first)
    run_epoch = ready.run_epoch if profiler is None else profiler.watch(ready.run_epoch)
    with collect_warnings(show.warn) as warnings:
        if not learner.progress.finished:
            around.started(run)
        _describe_contrast(plan, training, show)
        alarms = 0
        for done in train_epochs(learner, training, run_epoch, around.clock, show.tick):
            rows.append(row_of(done))
            keeper.keep_epoch(rows[-1])
            if keeper.checkpoint is not None:
                save_checkpoint(learner, keeper.checkpoint)
            around.epoch(run, done)
            show.epoch(done, plan.train.epochs)
            problem = done.health.warning()
            alarms = alarms + 1 if problem else 0
            if problem and alarms == _ALARMS:
                show.warn(f"epoch {done.epoch}: {problem}")
    for line in () if profiler is None else profile_lines(profiler.found, keeper.path):
        show.say(line)
    return _Trained(tuple(rows), run, training, tuple(warnings))


def _profiler(keeper: RunKeeper, device: torch.device) -> StepProfiler:
    if keeper.profile is None:
        raise SettingsError("A profile is kept as a trace in the run folder; name one with `out=...`.")
    return StepProfiler(keeper.profile, device)


def _limit(plan: Plan, store: Store, train: Instances, show: Display) -> Instances:
    """Return the training instances, at most as many as the setting `instances` allows."""
    most = plan.train.instances
    if most is None:
        return train
    limited = limit_instances(train, _patients(store, train), most, seeds.derive(plan.data.split_seed, "instances"))
    some, every = (len(_patients(store, one).unique()) for one in (limited, train))
    show.say(f"trains on {len(limited):,} of {len(train):,} instances, of {some:,} of {every:,} patients")
    return limited


def _patients(store: Store, instances: Instances) -> torch.Tensor:
    return store.patient[instances.frame[:, 0]]  # (n,)


def _describe_contrast(plan: Plan, training: Training, show: Display) -> None:
    """Print how many positives and negatives an anchor has, and warn of identical views."""
    if plan.needs.perturbations != "any" and (same := equal_views(training)):
        views = ", ".join(str(view + 1) for view in same)
        show.warn(f"view {views} equals view 1 in every instance: after normalisation the perturbations change nothing")
    if plan.loss is not None:
        others, own = pairs_per_anchor(training)
        show.say(
            f"per anchor, on average: {others:.1f} negatives from other patients, {own:.2f} positives of the same "
            "patient beside its own views"
        )


def _card(ready: _Ready, versions: dict[str, str]) -> EncoderCard:
    plan, cohort = ready.plan, ready.cohort
    return EncoderCard(
        method=plan.method.name,
        dataset=plan.dataset.offer.name,
        encoder=plan.encoder.offer.name,
        options=plain(plan.encoder.options),
        input_channels=len(cohort.channels) if plan.needs.encoder_channels == "all" else 1,
        frame_samples=plan.pretrain_framing.frame_samples,
        embedding_dim=plan.run.embedding_dim,
        count=plan.needs.encoders,
        channels=plan.needs.of_first(cohort.channels),
        run_channels=cohort.channels,
        unit=cohort.pretrain.unit,
        modality=plan.dataset.offer.modality,
        normalise=plan.data.normalise,
        pretrain_framing=plan.pretrain_framing,
        framing=plan.evaluate_framing,
        frame_rate=cohort.evaluate.frame_rate,
        task=plan.task,
        split_hash=cohort.split.hash,
        settings=plan.tables(),
        licence=plan.dataset.offer.licence,
        versions=versions,
    )


# -------------------------------------------------------------------------------------------------- evaluate and report


def _evaluate(ready: _Ready, around: Surroundings) -> Scored:
    """Score the best weights of the first encoder beside its controls, with the code of `clocs evaluate`."""
    plan = ready.plan
    channels = plan.needs.of_first(ready.cohort.channels)
    first = {name[2:]: tensor for name, tensor in ready.learner.best.items() if name.startswith("0.")}
    watch = Watch(around.clock, around.show.tick, lambda done: None, around.show.warn)
    cohort = attrs.evolve(ready.cohort, channels=channels)
    return score_own_encoder(own_evaluation(plan, first, channels), cohort, ready.device, watch)


def _report(ready: _Ready, trained: _Trained, scored: Scored, card: EncoderCard, show: Display) -> Report:
    plan, cohort, progress = ready.plan, ready.cohort, ready.learner.progress
    patients = _patients(trained.training.store, trained.training.train)
    return Report(
        method=plan.method.name,
        dataset=plan.dataset.offer.name,
        task=plan.task.name if cohort.has_labels else None,
        seed=plan.run.seed,
        settings=plan.tables(),
        epochs_run=progress.epoch,
        best_epoch=progress.best_epoch,
        exposure=expose(patients, plan.train.together, progress.epoch),
        stopped="all epochs" if progress.epoch >= plan.train.epochs else "early stopping",
        split=summarise_split(cohort, scored.frames.counts, ready.leaks),
        environment=dict(card.versions),
        scores=scored.evaluation.scores,
        comparisons=scored.evaluation.comparisons,
        patients=summarise_distances(scored.distances),
        retrieval=summarise_retrieval(scored.features, ready.device, show.tick),
        notes=(
            *trained.warnings,
            *_encoder_notes(plan, cohort.channels),
            *part_notes(plan.evaluate.part),
            *scored.evaluation.notes,
            *leak_notes(ready.leaks),
            *_health_notes(trained.history, plan),
        ),
        drops=ready.drops,
        form=cohort.listing.form,
    )


def _done(ready: _Ready, trained: _Trained, scored: Scored, report: Report) -> RunDone:
    plan, training = ready.plan, trained.training
    embeddings = name_embeddings(plan, scored.frames.store, scored.features[plan.method.name])
    views = draw_views(plan, ready.cohort, training.store, training.validation)
    distances = scored.distances[plan.method.name]
    pictures = draw_pictures(trained.history, report, embeddings, distances, views, ready.cohort.has_labels)
    return RunDone(report.epochs_run, report.best_epoch, report.scores, report.comparisons, embeddings, tuple(pictures))


def _encoder_notes(plan: Plan, channels: tuple[str, ...]) -> tuple[str, ...]:
    """Note where scores use fewer channels than the run was trained on."""
    read = plan.needs.of_first(channels)
    if read == channels:
        return ()
    others = ", ".join(name for name in channels if name not in read)
    return (
        f"Scores are of the first of {plan.needs.encoders} encoders, that of {', '.join(read)}; {others} is not read.",
    )


def _health_notes(rows: tuple[EpochRow, ...], plan: Plan) -> tuple[str, ...]:
    last = rows[-1]
    health = Health(
        last.effective_rank, plan.run.embedding_dim, last.same_patient, last.other_patient, last.loss_over_log_batch
    )
    problem = health.warning()
    return (f"At the end of training {problem}.",) if problem else ()
