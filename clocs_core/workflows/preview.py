"""Say what a run would read, train and write, and about how long it would take. Nothing is kept.

A few recordings are prepared in a temporary folder and trained on for three epochs; the shortest times are scaled.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import torch

from clocs_core.artifacts.several_seeds import list_seeds
from clocs_core.contracts.records import Entry, Listing, Part
from clocs_core.data.cohort import divide, find_root, prepare_recordings, refuse_unknown_channels, scan
from clocs_core.data.exposure import settle_epochs
from clocs_core.data.metadata import choose_columns, read_columns
from clocs_core.data.store import fill_store, list_instances
from clocs_core.errors import DataError
from clocs_core.evaluation.duration import estimate_scoring
from clocs_core.evaluation.scoring import Scoring
from clocs_core.files import show_bytes
from clocs_core.plan.pretraining import Plan
from clocs_core.progress import Stopwatch
from clocs_core.report.times import show_duration
from clocs_core.settings.places import data_root
from clocs_core.train.build import build_learner, build_views, choose_device, choose_epochs, describe_signals
from clocs_core.train.epochs import RunEpoch, Training
from clocs_core.train.learner import Learner
from clocs_core.train.loop import Extras, train_epochs
from clocs_core.workflows.training import too_short

_FEW, _EPOCHS = 24, 3  # recordings that are read, and epochs that are trained, to measure the time


@attrs.frozen
class Preview:
    """The preview of a run. Times are in seconds, and estimated.

    stored: bytes of prepared frames in `place`, on the disk. held: bytes of frames that training holds in the memory of
    a GPU.
    """

    recordings: int
    patients: Mapping[Part, int]
    channels: tuple[str, ...]
    seconds_of_frame: float | None
    instances: int  # per epoch, in the training part
    steps: int  # per epoch
    epochs: int
    parameters: int
    device: str
    preparing: float
    training: float
    evaluating: float
    stored: int
    held: int
    place: Path
    writes: str
    notes: tuple[str, ...]
    seeds: range | None = None  # where there are several runs; all that is said is of one of them

    def lines(self) -> tuple[str, ...]:
        """Return sentences for the console."""
        parts = ", ".join(f"{count:,} to {part}" for part, count in self.patients.items())
        lasting = f" of {self.seconds_of_frame:.3g} s" if self.seconds_of_frame else ""
        return (
            f"Would read {self.recordings:,} recordings of {sum(self.patients.values()):,} patients ({parts}), "
            f"channels {', '.join(self.channels)}: about {show_duration(self.preparing)}, less if prepared already.",
            f"Prepared frames take about {show_bytes(self.stored)} in {self.place}, where {show_bytes(self._free)} are "
            f"free{self._on_device}.",
            f"Would train {self.parameters:,} weights on about {self.instances:,} instances{lasting}, {self.steps:,} "
            f"steps an epoch, at most {self.epochs:,} epochs on {self.device}: about {show_duration(self.training)}, "
            "less if it stops early.",
            f"Would evaluate the encoder and its untrained control: about {show_duration(self.evaluating)}, and some "
            "seconds for the report.",
            f"Would write {self.writes}: settings, metrics, checkpoint, encoder, predictions and a report.",
            *self._about_seeds(),
            *self.notes,
            "Nothing was written.",
        )

    @property
    def _on_device(self) -> str:
        """Say what a GPU holds; a CPU reads frames where they lie."""
        return (
            "" if self.device == "cpu" else f"; training holds {show_bytes(self.held)} in the memory of {self.device}"
        )

    @property
    def _free(self) -> int:
        """The free bytes of the disk that frames are prepared on."""
        there = next(one for one in (self.place, *self.place.absolute().parents) if one.exists())
        return shutil.disk_usage(there).free

    def _about_seeds(self) -> tuple[str, ...]:
        """Say what several seeds add to what was said of one run."""
        if self.seeds is None:
            return ()
        how = "at the same time" if self.device == "cuda" else "one after the other"
        alone = show_duration(len(self.seeds) * (self.training + self.evaluating))
        return (
            f"Would do so for {len(self.seeds)} seeds, {self.seeds[0]} to {self.seeds[-1]}, {how}, each in a folder of "
            f"its own there (seed{self.seeds[0]} …), and summarise their scores: {alone} of work, without preparing.",
        )


@attrs.frozen
class _Sample:
    """A few recordings that were prepared and trained on. Times are in seconds.

    instances, frames: in all of them. stored: bytes of their frames; held: of those for training alone. uneven: why
    frames differ in length, if they do. trains, validates: time of an epoch over all instances.
    """

    recordings: int
    instances: int
    frames: int
    channels: tuple[str, ...]
    frame_rate: float | None
    uneven: str
    parameters: int
    prepares: float
    stored: int
    held: int
    trains: float
    validates: float


def preview_run(
    plan: Plan,
    out: Path,
    workers: int,
    clock: Callable[[], float],
    seeds: int | None = None,
    stage: Callable[[str], None] = lambda name: None,
) -> Preview:
    """Scan the recordings, prepare and train on a few, and scale. Raises what the run would raise so far.

    seeds: how many, from that of the plan on, where there is a run for each. stage: is told what begins.
    """
    device = choose_device(plan.run.device)
    run_epoch = choose_epochs(plan, device, lambda text: None)
    asked = plan.recordings
    stage("listing recordings")
    listing = scan(asked)
    plan = attrs.evolve(plan, task=listing.task or plan.task)
    if plan.data.normalise == "constant" and plan.data.constant is None:
        plan = attrs.evolve(plan, data=attrs.evolve(plan.data, constant=1.0))  # a run measures it; any takes as long
    split = divide(asked, listing)
    if asked.fit and listing.shortest is not None:
        framings = plan.pretrain_framing, plan.evaluate_framing
        pretrain, evaluate = (one.fitted(listing.shortest, asked.fit) for one in framings)
        plan = attrs.evolve(plan, pretrain_framing=pretrain, evaluate_framing=evaluate)
    stage("trying a few recordings")
    with TemporaryDirectory() as folder:
        few = _try(plan, listing, Path(folder), run_epoch, device, clock)
    patients = split.counts()
    times = len(listing.entries) / few.recordings / max(1, sum(patients.values()))  # how often, per patient
    train, held_out = (max(1, round(few.instances * times * patients[part])) for part in ("train", "validation"))
    frames = {part: round(few.frames * times * patients[part]) for part in patients}
    expected, epochs = min(train, plan.train.instances or train), settle_epochs(plan.train, train).epochs
    return Preview(
        recordings=len(listing.entries),
        patients=patients,
        channels=few.channels,
        seconds_of_frame=None if few.frame_rate is None else plan.pretrain_framing.frame_samples / few.frame_rate,
        instances=expected,
        steps=-(-expected // plan.train.batch_size),
        epochs=epochs,
        parameters=few.parameters,
        device=str(device),
        preparing=few.prepares / few.recordings * len(listing.entries) / max(1, workers),
        training=(few.trains * expected + few.validates * held_out) / max(1, few.instances) * epochs,
        stored=round(few.stored / few.recordings * len(listing.entries)),
        held=round(few.held / few.recordings * len(listing.entries)),
        place=data_root(plan.data.data_root),
        evaluating=_evaluating(plan, few, frames, device, clock) if _is_scored(listing) else 0.0,
        writes=str(out),
        notes=(*listing.notes, few.uneven) if few.uneven else listing.notes,
        seeds=None if seeds is None else list_seeds(plan.run.seed, seeds),
    )


def _try(
    plan: Plan, listing: Listing, folder: Path, run_epoch: RunEpoch, device: torch.device, clock: Callable[[], float]
) -> _Sample:
    """Prepare a few recordings in a folder, and train on them for a few epochs."""
    few, asked = _spread(listing.entries), plan.recordings
    watch = Stopwatch(clock)
    data = attrs.evolve(asked.data, root=find_root(asked), data_root=folder)
    sources = attrs.evolve(asked, data=data), attrs.evolve(listing, entries=few)
    with watch.part("prepare"):
        prepared = prepare_recordings(*sources, plan.pretrain_framing, 1, lambda done, total: None)
    if not listing.numbered:
        refuse_unknown_channels(asked.data.channels, prepared.channels, asked.name)
    channels = tuple(name for name in plan.data.channels if name in prepared.channels) or prepared.channels
    labels = {entry.record: entry.label for entry in few}
    owners = frozenset(entry.patient for entry in few)
    wanted = choose_columns(asked.columns, listing.columns or plan.dataset.offer.columns, asked.name)
    columns, about = read_columns(wanted, few, prepared.records, owners)
    store = fill_store(prepared, labels, plan.task, channels, device, about)
    needs, together = plan.needs, plan.needs.channels == "all"
    instances, _ = list_instances(prepared, owners, channels, needs.segments, together, device, needs.recordings)
    if not len(instances):
        raise DataError(too_short(plan, listing.shortest, ""))
    first = plan.encoder_parts(channels)[0]
    frames, _ = list_instances(prepared, owners, first.channels, 1, first.inputs > 1, device)
    signals = describe_signals(plan, prepared, channels)
    learner = build_learner(plan, signals, device, len(instances), columns)
    settings = attrs.evolve(plan.train, epochs=_EPOCHS, keep="last", instances=None)
    training = Training(store, build_views(plan, signals), instances, instances, settings, plan.run.seed)
    trains, validates = _measure(learner, training, run_epoch, clock)
    others = 0
    if plan.evaluate_framing != plan.pretrain_framing:
        with watch.part("prepare"):
            others = prepare_recordings(*sources, plan.evaluate_framing, 1, lambda done, total: None).frames.nbytes
    return _Sample(
        recordings=len(few),
        instances=len(instances),
        frames=len(frames),
        channels=channels,
        frame_rate=prepared.frame_rate,
        uneven=prepared.uneven,
        parameters=sum(one.numel() for one in learner.encoders.parameters()),
        prepares=watch.seconds["prepare"],
        stored=prepared.frames.nbytes + others,
        held=prepared.frames.nbytes,
        trains=trains,
        validates=validates,
    )


def _evaluating(
    plan: Plan, few: _Sample, frames: Mapping[Part, int], device: torch.device, clock: Callable[[], float]
) -> float:
    """Return seconds to embed, fit and score with the encoder and its control. frames: expected, of each part."""
    inits, part = 2, plan.evaluate.part
    embedding = few.validates / max(1, few.frames) * (frames["train"] + frames[part])  # validation passes all frames
    scoring = Scoring(plan.task, plan.dataset.offer.name, plan.metrics, plan.evaluate, plan.data.split_seed, device)
    return inits * embedding + estimate_scoring(
        scoring, plan.run.embedding_dim, frames["train"], frames[part], inits, clock
    )


def _is_scored(listing: Listing) -> bool:
    return not listing.no_score and any(entry.label is not None for entry in listing.entries)


def _spread(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return a few entries from the whole list, so that no single patient decides."""
    step = max(1, len(entries) // _FEW)
    return tuple(entries[::step][:_FEW])


def _measure(
    learner: Learner, training: Training, run_epoch: RunEpoch, clock: Callable[[], float]
) -> tuple[float, float]:
    """Return the seconds that an epoch trains and validates, each in the quickest of a few epochs."""
    watch, found = Stopwatch(clock), []
    for _ in train_epochs(learner, training, run_epoch, clock, lambda done, total: None, extras=Extras(watch)):
        found.append((watch.seconds.pop("training"), watch.seconds.pop("validation")))
    return min(one for one, _ in found), min(one for _, one in found)
