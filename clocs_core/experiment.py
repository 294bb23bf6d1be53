"""The story of a run on one page: scan, split, load, frame, store, pre-train, save, evaluate, report.

The only caller of the event hooks. Settings come in as a plan, a report goes out; everything else is on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import attrs
import torch

from clocs_core import seeds
from clocs_core.data import splits
from clocs_core.data.audit import certified_audit
from clocs_core.data.exposure import expose, limit_instances
from clocs_core.data.material import Material, get_material
from clocs_core.data.records import DropReport
from clocs_core.data.splits import PARTS, Part
from clocs_core.data.store import Instances, Store, fill_store, list_instances
from clocs_core.environment import environment
from clocs_core.errors import DataError
from clocs_core.evaluate.predictionfile import save_predictions
from clocs_core.evaluate.scoring import score_encoders
from clocs_core.extend.events import Health, RunDone, RunStarted
from clocs_core.extend.host import Host
from clocs_core.extend.plan import Plan, refuse_too_few
from clocs_core.files import write_atomically
from clocs_core.heard import hear_warnings
from clocs_core.progress import TrainingDisplay
from clocs_core.report.compose import (
    draw_pictures,
    leak_notes,
    name_embeddings,
    part_notes,
    summarise_distances,
    summarise_retrieval,
    summarise_split,
)
from clocs_core.report.document import EpochRow, Report, read_rows, row_of, to_json, to_line
from clocs_core.report.page import render
from clocs_core.runfolder import RunFolder, create_run_folder
from clocs_core.train.assemble import build_encoders, build_learner, build_views, choose_device, choose_epochs
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.encoderfile import add_scores, save_encoder
from clocs_core.train.epochs import RunEpoch, Training, equal_views, pairs_per_anchor
from clocs_core.train.learner import Learner
from clocs_core.train.pretrain import pretrain
from clocs_core.train.profiling import StepProfile, StepProfiler

__all__ = ["pretrain_run"]

Clock = Callable[[], float]

_ALARMS = 10  # epochs in a row that look collapsed before anybody is told: the first ones often do, and recover


def pretrain_run(
    plan: Plan, path: Path, host: Host, show: TrainingDisplay, workers: int, clock: Clock, profile: bool = False
) -> Report:
    """Pre-train, evaluate and report into the folder `path`, or go on where it stands. Returns what report.json holds.

    The folder is made once the recordings are known to serve, so that a mistake leaves nothing behind.
    profile: look where the time of a step goes, and say so.
    """
    folder = RunFolder(path)
    with ExitStack() as stack:
        if folder.settings.exists():
            stack.enter_context(folder.lock())
        return _run(plan, folder, host, show, workers, clock, profile, stack)


def _run(
    plan: Plan,
    folder: RunFolder,
    host: Host,
    show: TrainingDisplay,
    workers: int,
    clock: Clock,
    profile: bool,
    stack: ExitStack,
) -> Report:
    began = clock()
    device = choose_device(plan.run.device)
    run_epoch = choose_epochs(plan, device, show.warn)  # a step that cannot be had is said before anything is read
    profiler = StepProfiler(folder.profile, device) if profile else None
    show.stage("preparing recordings")
    material = get_material(plan.recordings, plan.pretrain_framing, plan.evaluate_framing, workers, show.tick)
    plan = attrs.evolve(plan, task=material.task, data=attrs.evolve(plan.data, channels=material.channels))
    refuse_too_few(plan.method, plan.needs, material.channels, plan.dataset.offer)
    instances, drops = _instances(plan, material, device)
    learner = build_learner(plan, len(material.channels), device)
    show.say(_found(plan, material, instances, drops))
    leaks = certified_audit(material.evaluate, material.split)
    tolerated = material.evaluate.tolerated
    put_up_with = (f"read all the same: {tolerated.reasons()}",) if tolerated.counts else ()
    for note in (*material.listing.notes, *put_up_with, leaks.sentence()):
        show.say(note)
    if not folder.settings.exists():
        create_run_folder(folder.path, plan.tables())
        stack.enter_context(folder.lock())
    write_atomically(folder.split, splits.to_json(material.split))
    prepared = clock()

    show.stage("pre-training")
    store = fill_store(material.pretrain, material.labels, plan.task, material.channels, device)
    instances["train"] = _limited(plan, store, instances["train"], show)
    run = RunStarted(folder.path, plan.method.name, plan.dataset.offer.name, plan.tables(), first_epoch=1)
    watched = run_epoch if profiler is None else profiler.watch(run_epoch)
    with hear_warnings(show.warn) as heard:
        rows = _train(plan, folder, host, show, clock, watched, learner, store, instances, material, run)
    if profiler is not None:
        _tell_profile(profiler.found, folder, show)
    versions = environment(device, host)
    unit = material.pretrain.unit
    rate = material.evaluate.frame_rate
    save_encoder(learner.best, plan, material.channels, unit, material.split, versions, folder.encoder, frame_rate=rate)
    trained = clock()

    show.stage("evaluating")
    trained_encoders, untrained = (build_encoders(plan, len(material.channels), device) for _ in range(2))
    trained_encoders.load_state_dict(learner.best)
    inits = {plan.method.name: trained_encoders[0], "random": untrained[0]}
    found = score_encoders(plan, material, inits, device, show.tick)
    evaluation, embeddings = found.evaluation, name_embeddings(plan, found.store, found.features[plan.method.name])
    if evaluation.predicted:
        save_predictions(evaluation.predicted, found.store.patients, found.store.records, folder.predictions)
    report = Report(
        method=plan.method.name,
        dataset=plan.dataset.offer.name,
        task=plan.task.name if material.has_labels else None,
        seed=plan.run.seed,
        settings=plan.tables(),
        epochs_run=learner.progress.epoch,
        best_epoch=learner.progress.best_epoch,
        exposure=expose(_patients(store, instances["train"]), plan.train.together, learner.progress.epoch),
        stopped="all epochs" if learner.progress.epoch >= plan.train.epochs else "early stopping",
        split=summarise_split(material, found.frames, leaks),
        environment=versions,
        scores=evaluation.scores,
        comparisons=evaluation.comparisons,
        patients=summarise_distances(found.distances),
        retrieval=summarise_retrieval(found.features, device, show.tick),
        notes=(
            *heard,
            *_encoder_notes(plan, material.channels),
            *part_notes(plan.evaluate.part),
            *evaluation.notes,
            *leak_notes(leaks),
            *_health_notes(rows, plan),
        ),
        drops=drops,
        form=material.listing.form,
        seconds={"prepare": prepared - began, "pretrain": trained - prepared, "evaluate": clock() - trained},
    )
    distances = found.distances[plan.method.name]
    pictures = draw_pictures(plan, material, store, instances["validation"], rows, report, embeddings, distances)
    add_scores(folder.encoder, report.scores)
    write_atomically(folder.page, render(report, rows, pictures))
    write_atomically(folder.report, to_json(report))  # last: a folder with a report is a finished run
    done = RunDone(report.epochs_run, report.best_epoch, report.scores, report.comparisons, embeddings, tuple(pictures))
    host.announce("clocs_run_done", show.warn, run=run, done=done)
    return report


def _instances(plan: Plan, material: Material, device: torch.device) -> tuple[dict[Part, Instances], DropReport]:
    """The method's instances in each part, and everything that was left out on the way to them."""
    needs = plan.needs
    drops = DropReport.of(material.listing.drops) + material.pretrain.drops
    instances: dict[Part, Instances] = {}
    for part in PARTS:
        instances[part], short = list_instances(
            material.pretrain,
            frozenset(material.split.patients(part)),
            material.channels,
            needs.segments,
            needs.channels == "all",
            device,
        )
        drops = drops + DropReport.of(short)
        if part != "test" and not len(instances[part]):
            raise DataError(
                f"Method {plan.method.name!r} contrasts {needs.segments} frames in a row of "
                f"{plan.pretrain_framing.frame_samples} samples, and no recording of the {part} patients has them; "
                "use shorter frames (`-o frame_samples=…`) or a method that needs fewer."
            )
    return instances, drops


def _limited(plan: Plan, store: Store, train: Instances, show: TrainingDisplay) -> Instances:
    """The training instances, or as many of them as were asked for."""
    most = plan.train.instances
    if most is None:
        return train
    limited = limit_instances(train, _patients(store, train), most, seeds.derive(plan.data.split_seed, "instances"))
    some, every = (len(_patients(store, one).unique()) for one in (limited, train))
    show.say(f"trains on {len(limited):,} of {len(train):,} instances, of {some:,} of {every:,} patients")
    return limited


def _patients(store: Store, instances: Instances) -> torch.Tensor:
    return store.patient[instances.frame[:, 0]]  # (n,)


def _train(
    plan: Plan,
    folder: RunFolder,
    host: Host,
    show: TrainingDisplay,
    clock: Clock,
    run_epoch: RunEpoch,
    learner: Learner,
    store: Store,
    instances: dict[Part, Instances],
    material: Material,
    run: RunStarted,
) -> tuple[EpochRow, ...]:
    """Train from where the checkpoint stands, changing `learner`, which ends with its best weights kept."""
    if folder.checkpoint.exists():
        load_checkpoint(learner, folder.checkpoint)
        show.say(f"going on after epoch {learner.progress.epoch}")
    # A kill between the metrics and the checkpoint leaves a line too many, or half of one.
    past = read_rows(folder.metrics.read_text(encoding="utf-8")) if folder.metrics.exists() else ()
    rows = [row for row in past if row.epoch <= learner.progress.epoch]
    write_atomically(folder.metrics, "".join(map(to_line, rows)))
    run = attrs.evolve(run, first_epoch=learner.progress.epoch + 1)
    if not learner.progress.finished:
        host.announce("clocs_run_started", show.warn, run=run)
    training = Training(
        store=store,
        make_views=build_views(plan, material.pretrain.unit),
        train=instances["train"],
        validation=instances["validation"],
        settings=plan.train,
        seed=plan.run.seed,
    )
    if plan.needs.perturbations != "any" and (same := equal_views(training)):
        views = ", ".join(str(view + 1) for view in same)
        show.warn(
            f"view {views} is the same as view 1 in every instance: the perturbations, normalised, change nothing"
        )
    if plan.loss is not None:
        others, own = pairs_per_anchor(training)
        show.say(f"in its batch, an instance meets {others:.1f} of other patients and {own:.2f} of its own on average")
    alarms = 0
    for done in pretrain(learner, training, run_epoch, clock, show.tick):
        rows.append(row_of(done))
        with open(folder.metrics, "a", encoding="utf-8") as file:
            file.write(to_line(rows[-1]))
        save_checkpoint(learner, folder.checkpoint)
        host.announce("clocs_epoch_done", show.warn, run=run, epoch=done)
        show.epoch(done, plan.train.epochs)
        problem = done.health.warning()
        alarms = alarms + 1 if problem else 0
        if problem and alarms == _ALARMS:
            show.warn(f"epoch {done.epoch}: {problem}")
    return tuple(rows)


def _tell_profile(found: StepProfile | None, folder: RunFolder, show: TrainingDisplay) -> None:
    """What a profile of steps has found."""
    if found is None:
        show.warn("the run had too few steps to profile; try more epochs or a smaller batch")
        return
    if found.gpu_busy is None:
        show.say(f"a step takes {found.milliseconds:.2f} ms, by operation:")
    elif not found.gpu_busy:
        show.warn("the profiler saw nothing on the GPU: its driver may show kernels to administrators alone")
    else:
        lasts = f"under the profiler a step lasts {found.milliseconds:.2f} ms"
        show.say(f"{lasts}, and the GPU is busy for {found.gpu_busy:.2f} of them; by kernel:")
    for row in found.shares:
        show.say(f"  {row.share:6.1%}  {row.milliseconds:8.3f} ms  {row.name}")
    show.say(f"the trace is in {folder.profile}: tensorboard --logdir {folder.path}, or chrome://tracing")


def _encoder_notes(plan: Plan, channels: tuple[str, ...]) -> tuple[str, ...]:
    """What a reader must know where scores are of some of the channels that were learnt from."""
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


def _found(plan: Plan, material: Material, instances: dict[Part, Instances], drops: DropReport) -> str:
    entries, patients = len(material.listing.entries), len(material.split.parts)
    counts = " / ".join(f"{n:,}" for n in material.split.counts().values())
    each = " / ".join(f"{len(instances[part]):,}" for part in PARTS)
    form = f" ({material.listing.form})" if material.listing.form else ""
    return (
        f"{plan.dataset.offer.name}{form}: {entries:,} recordings of {patients:,} patients, "
        f"{counts} to train / validate / test; instances {each}; {drops.sentence()}"
    )
