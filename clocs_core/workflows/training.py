"""Prepare the recordings of a run, and train its learner: the first two stages of pre-training."""

from __future__ import annotations

from warnings import warn

import attrs
import torch

from clocs_core import seeds
from clocs_core.artifacts.run_keeper import RunKeeper
from clocs_core.artifacts.split import PARTS
from clocs_core.artifacts.training_log import TrainingLog, read_log
from clocs_core.contracts.events import RunStarted
from clocs_core.contracts.records import DropReport, Framing, Part
from clocs_core.data.amplitude import measure_deviation
from clocs_core.data.audit import Audit, certified_audit
from clocs_core.data.cohort import Cohort, get_cohort
from clocs_core.data.exposure import limit_instances, settle_epochs
from clocs_core.data.prepared import Prepared
from clocs_core.data.store import Instances, Store, fill_store, list_instances
from clocs_core.errors import ClocsWarning, DataError, SettingsError
from clocs_core.plan.pretraining import Plan, refuse_too_few
from clocs_core.progress import Display, Stopwatch, collect_warnings
from clocs_core.settings.sections import DataSettings
from clocs_core.train.agreement import first_alone, refuse_differences
from clocs_core.train.build import (
    build_learner,
    build_views,
    choose_device,
    choose_epochs,
    describe_signals,
    refuse_lone_instances,
)
from clocs_core.train.checkpoint import load_checkpoint
from clocs_core.train.epochs import RunEpoch, Training, equal_views, pairs_per_anchor, share_of_lone_patients
from clocs_core.train.learner import Learner
from clocs_core.train.loop import Extras, train_epochs
from clocs_core.train.profiling import StepProfiler, profile_lines
from clocs_core.train.ranks import Group
from clocs_core.train.step import ViewMaker, share_statistics
from clocs_core.workflows.background import import_triton, load_gpu_libraries
from clocs_core.workflows.environment import device_name, versions
from clocs_core.workflows.saving import saving
from clocs_core.workflows.surroundings import Surroundings

_ALARMS = 10  # collapsed epochs in a row before a warning: early epochs often look collapsed, and recover

_ALONE = 0.9  # share of batches with a single patient from which on a run warns


@attrs.frozen(eq=False)
class Ready:
    """A plan with prepared recordings and an untrained learner. seconds: the time until here, by stage."""

    plan: Plan
    cohort: Cohort
    instances: dict[Part, Instances]
    drops: DropReport
    leaks: Audit
    learner: Learner
    make_views: ViewMaker
    run_epoch: RunEpoch
    device: torch.device
    seconds: dict[str, float]


@attrs.frozen(eq=False)
class Trained:
    """The log of a training, over all processes of the run, and the instances and frames that it was trained on."""

    log: TrainingLog
    run: RunStarted
    training: Training


def prepare_run(plan: Plan, around: Surroundings) -> Ready:
    """Read and prepare the recordings of a plan, and build its learner. Raises DataError where they cannot serve."""
    show, watch = around.show, Stopwatch(around.clock)
    began = around.clock()
    if around.began is not None:
        watch.add("start", began - around.began)
    watch.add("prepare", 0.0)  # before its part
    device = choose_device(plan.run.device)
    group = around.group
    run_epoch = choose_epochs(plan, device, show.warn, group)  # fail before reading anything
    refuse_lone_instances(plan, device)
    if group is None:  # the GPU of several processes was chosen in their main threads
        load_gpu_libraries(device)
    plan, cohort = find_recordings(plan, around, device)
    if (importing := import_triton(device)) is not None:
        importing.join()
    refuse_too_few(plan.method, plan.needs, cohort.channels, plan.dataset.offer)
    instances, drops = _instances(plan, cohort, device)
    plan = attrs.evolve(plan, train=settle_epochs(plan.train, len(instances["train"])))
    signals = describe_signals(plan, cohort.pretrain, cohort.channels)
    make_views = build_views(plan, signals)
    learner = build_learner(plan, signals, device, len(instances["train"]), cohort.columns)
    if group is not None:
        share_learner(learner, plan, group)
    show.say(_found(plan, cohort, instances, drops))
    with watch.part("prepare/audit"):
        leaks = certified_audit(cohort.evaluate, cohort.split, device)
    tolerated = cohort.evaluate.tolerated
    put_up_with = (f"read despite faults: {tolerated.reasons()}",) if tolerated.counts else ()
    unscored = (f"there will be no score: {cohort.listing.no_score}",) if cohort.listing.no_score else ()
    for note in filter(
        None, (*cohort.listing.notes, cohort.pretrain.uneven, *put_up_with, *unscored, leaks.sentence())
    ):
        show.say(note)
    watch.add("prepare", around.clock() - began)
    return Ready(plan, cohort, instances, drops, leaks, learner, make_views, run_epoch, device, watch.seconds)


def find_recordings(plan: Plan, around: Surroundings, device: torch.device) -> tuple[Plan, Cohort]:
    """Read and prepare the recordings of a plan; return the plan with what only the files know. Other runs share them.

    A plan that was returned here has the same recordings.
    """
    around.show.stage("preparing recordings")
    cohort = _cohort(plan, around, device)
    found = _as_found(plan, cohort, around.show)
    return found, around.shared.get(found, lambda: cohort)


def _cohort(plan: Plan, around: Surroundings, device: torch.device) -> Cohort:
    """Find, divide and prepare the recordings: process 0 first, the others then read what it prepared."""
    group, framings = around.group, (plan.pretrain_framing, plan.evaluate_framing)

    def get() -> Cohort:
        return get_cohort(plan.recordings, *framings, around.workers, around.show.tick)

    cohort = first_alone(group, device, lambda: around.shared.get(plan, get))
    if group is not None:
        counts = {f"{part} patients": str(count) for part, count in cohort.split.counts().items()}
        frames = f"{len(cohort.pretrain.record):,} of {len(cohort.pretrain.records):,} recordings"
        signals = {"checksum of the frames": f"{cohort.pretrain.contents} {cohort.evaluate.contents}"}
        refuse_differences({"split": cohort.split.hash, "frames": frames, **counts, **signals}, group, device)
    return cohort


def share_learner(learner: Learner, plan: Plan, group: Group) -> None:
    """Share the statistics of BatchNorm among the processes, where the plan says so."""
    if plan.train.sync_batchnorm:
        share_statistics(learner.encoders, learner.objective, group)


def _as_found(plan: Plan, cohort: Cohort, show: Display) -> Plan:
    """Return the plan with the task, the channels, the framing and the amplitude that only the files know."""
    pretrain, evaluate = cohort.pretrain.framing, cohort.evaluate.framing
    if pretrain != plan.pretrain_framing and pretrain.source_samples is not None:
        show.say(
            f"the shortest recording has {cohort.listing.shortest:,} samples: windows of {pretrain.source_samples:,} "
            f"are resampled to frames of {pretrain.frame_samples:,} (`source_samples={pretrain.source_samples}`)"
        )
    data = with_constant(attrs.evolve(plan.data, channels=cohort.channels), cohort.pretrain, cohort, show)
    return attrs.evolve(plan, task=cohort.task, data=data, pretrain_framing=pretrain, evaluate_framing=evaluate, fit=0)


def with_constant(data: DataSettings, prepared: Prepared, cohort: Cohort, show: Display) -> DataSettings:
    """Return the settings with the constant of `normalise='constant'`, measured where nobody gave one."""
    if data.normalise != "constant" or data.constant is not None:
        return data
    constant = measure_deviation(prepared, frozenset(cohort.split.patients("train")), cohort.channels)
    show.say(f"signals are divided by {constant:g} {prepared.unit}, the standard deviation of the training frames")
    return attrs.evolve(data, constant=constant)


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
            needs.recordings,
        )
        drops = drops + DropReport.of(short)
        if part != "test" and not len(instances[part]):
            raise DataError(too_short(plan, cohort.listing.shortest, f" of the {part} part"))
    return instances, drops


def too_short(plan: Plan, shortest: int | None, whose: str) -> str:
    """Say that no recording has frames enough, and what to add: windows that the shortest one has.

    shortest: samples of the shortest recording. whose: such as " of the test part"; "" for all.
    """
    segments, framing = plan.needs.segments, plan.pretrain_framing
    if (several := plan.needs.recordings) > 1:
        each = "one frame" if segments == 1 else f"{segments} frames in a row"
        return (
            f"Method {plan.method.name!r} contrasts {several} recordings of a patient, of {each} each, and no "
            f"patient{whose} has as many; choose recordings that were repeated, or a method that needs one recording."
        )
    way_out = "use shorter frames (`frame_samples=...`)"
    if shortest is not None:
        fitting = Framing(frame_samples=framing.frame_samples).fitted(shortest, max(2, segments)).source_samples
        or_stretch = "" if fitting is None else f" or use `source_samples={fitting}`"
        way_out = f"the shortest has {shortest:,} samples, so leave the framing out{or_stretch},"
    return (
        f"Method {plan.method.name!r} contrasts {segments} frames in a row of {framing.frame_samples} samples, and no "
        f"recording{whose} has them; {way_out} or choose a method that needs fewer."
    )


def _found(plan: Plan, cohort: Cohort, instances: dict[Part, Instances], drops: DropReport) -> str:
    entries, patients = len(cohort.listing.entries), len(cohort.split.parts)
    counts = " / ".join(f"{n:,}" for n in cohort.split.counts().values())
    each = " / ".join(f"{len(instances[part]):,}" for part in PARTS)
    form = f" ({cohort.listing.form})" if cohort.listing.form else ""
    shown, more = cohort.channels[:12], len(cohort.channels) - 12
    named = f"; channels {', '.join(shown)}{f' and {more} more' if more > 0 else ''}"  # a table may hold other columns
    return (
        f"{plan.dataset.offer.name}{form}: {entries:,} recordings of {patients:,} patients, "
        f"{counts} to train / validate / test; instances {each}{'' if plan.dataset.offer.channels else named}; "
        f"{drops.sentence()}"
    )


def train_run(ready: Ready, keeper: RunKeeper, around: Surroundings, profile: bool) -> Trained:
    """Train the learner, from the checkpoint if there is one. Changes the learner, which keeps its best weights."""
    plan, cohort, learner, show, began = ready.plan, ready.cohort, ready.learner, around.show, around.clock()
    profiler = _profiler(keeper, ready.device) if profile else None
    store = fill_store(cohort.pretrain, cohort.labels, plan.task, cohort.channels, ready.device, cohort.about)
    training = Training(
        store=store,
        make_views=ready.make_views,
        train=_limit(plan, store, ready.instances["train"], show),
        validation=ready.instances["validation"],
        settings=plan.train,
        seed=plan.run.seed,
        group=around.group,
    )
    if around.group is not None:
        around.group.wait(ready.device)  # process 0 has begun the run
    before = _resume(learner, keeper, show)
    if around.group is not None:  # a process that cannot see the run folder would begin anew when it is resumed
        seen = f"{learner.progress.epoch}" if keeper.finds_run() else "none, it does not see the folder"
        refuse_differences({"epochs in the run folder": seen}, around.group, ready.device)
    now = {"device": device_name(ready.device), **versions(around.host)}
    others = before.other_versions(now) if not learner.progress.finished else ""
    before = attrs.evolve(before, versions=now)
    log, missed = before, bool(before.losses) and keeper.told_until() < learner.progress.epoch
    first = learner.progress.epoch + (0 if missed else 1)
    run = RunStarted(keeper.path, plan.method.name, plan.dataset.offer.name, plan.tables(), first)
    run_epoch = ready.run_epoch if profiler is None else profiler.watch(ready.run_epoch)
    watch = Stopwatch(around.clock)
    with collect_warnings(show.warn) as warnings:
        if others:
            resumed = f"the run was resumed after epoch {learner.progress.epoch} with other versions: {others}"
            warn(f"{resumed}. Its numbers may differ from those of one version", ClocsWarning, stacklevel=2)

        def so_far() -> TrainingLog:
            parts = {f"pretrain/{part}": seconds for part, seconds in watch.seconds.items()}
            spent = {**ready.seconds, "pretrain": around.clock() - began, **parts}
            return attrs.evolve(before, rows=log.rows, losses=log.losses).adding(warnings, spent)

        if missed or not learner.progress.finished:
            around.started(run)
        if missed:  # the process was killed between its checkpoint and its listeners
            around.epoch(run, log.last(plan.run.embedding_dim, learner.progress.best_epoch, learner.progress.finished))
        keeper.tell_until(learner.progress.epoch)
        _describe_contrast(plan, training, show)
        alarms = 0
        with saving(run, keeper, around, ready.device) as saver:
            steps = (learner, training, run_epoch, around.clock, show.tick)
            for done in train_epochs(*steps, extras=Extras(watch, saver.hold)):
                log = log.after(done)
                saver.save(done, learner, so_far())
                show.epoch(done, plan.train.epochs)
                problem = done.health.warning()
                alarms = alarms + 1 if problem else 0
                if problem and alarms == _ALARMS:
                    show.warn(f"epoch {done.epoch}: {problem}")
    for line in () if profiler is None else profile_lines(profiler.found, keeper.path):
        show.say(line)
    return Trained(so_far(), run, training)


def _resume(learner: Learner, keeper: RunKeeper, show: Display) -> TrainingLog:
    """Load the checkpoint, if there is one, and restore the metrics. Returns the log of the training so far."""
    log = TrainingLog()
    if keeper.checkpoint is not None and keeper.checkpoint.exists():
        held = load_checkpoint(learner, keeper.checkpoint)
        epoch = learner.progress.epoch
        log = read_log(held, str(keeper.checkpoint)) if held else TrainingLog(rows=keeper.kept_rows(epoch))
        show.say(f"resuming after epoch {epoch}")
    keeper.restore_rows(log.rows)
    return log


def _profiler(keeper: RunKeeper, device: torch.device) -> StepProfiler:
    if keeper.profile is None:
        raise SettingsError("A profile is kept as a trace in the run folder; name one with `out=...`.")
    return StepProfiler(keeper.profile, device)


def _limit(plan: Plan, store: Store, train: Instances, show: Display) -> Instances:
    """Return the training instances, at most as many as the setting `instances` allows."""
    most = plan.train.instances
    if most is None:
        return train
    limited = limit_instances(train, patients_of(store, train), most, seeds.derive(plan.data.split_seed, "instances"))
    some, every = (len(patients_of(store, one).unique()) for one in (limited, train))
    show.say(f"trains on {len(limited):,} of {len(train):,} instances, of {some:,} of {every:,} patients")
    return limited


def patients_of(store: Store, instances: Instances) -> torch.Tensor:
    """Return the patient of each instance, by number."""
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
        alone = share_of_lone_patients(training)
        if alone >= _ALONE:
            patients = len(patients_of(training.store, training.train).unique())
            show.warn(
                f"{alone:.0%} of the batches have instances of one patient only, so that patients are hardly ever told "
                f"apart; there are {patients:,} to train on. Use a larger `batch_size`, or recordings of more patients"
            )
