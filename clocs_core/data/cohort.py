"""Scan a data set, split it by patient and prepare its frames on disk for a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.split import PUBLISHED, Split
from clocs_core.contracts.kinds import fault_of_label, kind_of
from clocs_core.contracts.offers import Dataset
from clocs_core.contracts.records import Column, FrameLabel, Framing, Label, Listing, Task
from clocs_core.contracts.returned import broken_promise, returned
from clocs_core.data.framing import frame_labels
from clocs_core.data.metadata import choose_columns, read_columns
from clocs_core.data.preparation import prepare
from clocs_core.data.prepared import Prepared
from clocs_core.data.recipe import Recipe
from clocs_core.data.shards import Workers
from clocs_core.data.splits import published_split, split_patients
from clocs_core.errors import DataError, DataNotFound
from clocs_core.plan.data import DataPlan
from clocs_core.settings.places import data_root, dataset_folder

Tick = Callable[[int, int], None]


@attrs.frozen(eq=False)
class Cohort:
    """The recordings of a run: the listing, the split, and the frames for pre-training and for evaluation.

    columns, about: the columns that the method needs, and their values in the order of the records of `pretrain`.
    """

    listing: Listing
    split: Split
    pretrain: Prepared
    evaluate: Prepared
    channels: tuple[str, ...]
    task: Task
    columns: tuple[Column, ...] = ()
    about: Mapping[str, NDArray[Any]] = attrs.field(factory=dict)

    @property
    def labels(self) -> dict[str, Label]:
        """The label of each record, by its id."""
        return {entry.record: entry.label for entry in self.listing.entries}

    def labelled_frames(self) -> dict[str, int]:
        """Count the frames of the evaluation by class of the task."""
        bounds = np.searchsorted(self.evaluate.record, np.arange(len(self.evaluate.records) + 1))
        labels = self.labels
        found: list[FrameLabel | None] = []
        for number, (record, _) in enumerate(self.evaluate.records):
            start = self.evaluate.start[bounds[number] : bounds[number + 1]]
            found += frame_labels(labels[record], start, self.task.kind)
        return kind_of(self.task).count(found, self.task)

    @property
    def has_labels(self) -> bool:
        """Whether any recording is labelled for the task."""
        return any(entry.label is not None for entry in self.listing.entries)


def get_cohort(asked: DataPlan, pretrain: Framing, evaluate: Framing, workers: Workers, tick: Tick) -> Cohort:
    """Find, divide and prepare recordings, in one framing or two. Frames that are prepared already are only opened.

    The split is made here, before any framing, over the patients with an entry: it depends on the data set, the
    task and the split seed, never on method, channels or frame length.
    """
    listing = scan(asked)
    asked, names = _settled(asked, listing), _names_given(asked, listing)
    columns = choose_columns(asked.columns, listing.columns or asked.dataset.offer.columns, asked.name)
    listing = attrs.evolve(listing, no_score=listing.no_score or _only_class(asked, listing))
    split = divide(asked, listing)
    if asked.fit and listing.shortest is not None:
        pretrain, evaluate = (one.fitted(listing.shortest, asked.fit) for one in (pretrain, evaluate))
    first = prepare_recordings(asked, listing, pretrain, workers, tick)
    second = first if evaluate == pretrain else prepare_recordings(asked, listing, evaluate, workers, tick)
    sets = [first, second]  # opening a set reads all of it
    if names:  # frames on disk keep the numbers, so that renaming a channel prepares nothing again
        sets = [attrs.evolve(one, channels=names) for one in sets]
    found = sets[0].channels
    refuse_unknown_channels(asked.data.channels, found, asked.name)
    columns, about = read_columns(columns, listing.entries, sets[0].records, frozenset(split.patients("train")))
    return Cohort(
        listing=listing,
        split=split,
        pretrain=sets[0],
        evaluate=sets[1],
        channels=asked.data.channels or found,
        task=asked.task,
        columns=columns,
        about=about,
    )


def refuse_unknown_channels(asked: Sequence[str], found: Sequence[str], dataset: str) -> None:
    """Raise DataError for a channel that the recordings of a data set do not have."""
    missing = [name for name in asked if name not in found]
    if missing:
        raise DataError(
            f"Channel {missing[0]!r} was asked for, but the recordings of {dataset!r} have {', '.join(found)}."
        )


def divide(asked: DataPlan, listing: Listing) -> Split:
    """Return the published split of these recordings, or else the one drawn by the split seed."""
    seed, rule = asked.data.split_seed, asked.data.split
    parts = listing.published if listing.parts is None and rule == PUBLISHED else listing.parts
    if parts is not None:
        return published_split(parts, seed)
    if rule == PUBLISHED:
        why = listing.unpublished or f"{asked.name!r} comes without a split of its patients here"
        raise DataError(f"`split='published'` was asked for, but {why}. Use `split='60/20/20'`.")
    return split_patients((entry.patient for entry in listing.entries), seed, rule)


def scan(asked: DataPlan) -> Listing:
    """List the recordings. Raises DataNotFound where the data set is not on this machine."""
    dataset = asked.dataset.offer
    root = find_root(asked)
    if not dataset.embedded and not root.exists():
        raise DataNotFound(_not_there(dataset, root))
    listing = returned(dataset.scan(root, asked.task, asked.dataset.options), Listing, dataset, "scan")
    if not listing.entries:
        dropped = (
            f"; it left out {len(listing.drops)}, the first because: {listing.drops[0].reason}" if listing.drops else ""
        )
        raise DataError(
            f"No usable recording of {dataset.name!r} in {root}{dropped}. Point `root=...` at the folder that was "
            "downloaded and unpacked."
        )
    _refuse_labels(listing, asked)
    return listing


def _refuse_labels(listing: Listing, asked: DataPlan) -> None:
    """Raise PluginError for labels that are none of the task's: they would end in an error of another place."""
    task, dataset = listing.task or asked.task, asked.dataset.offer
    for entry in listing.entries:
        if fault := fault_of_label(entry.label, task):
            given = f"gives the recording {entry.record!r} the label {entry.label!r:.60} for the task {task.name!r}"
            raise broken_promise(f"{given}: {fault}", dataset, "scan")


def _settled(asked: DataPlan, listing: Listing) -> DataPlan:
    """Fill in the task's classes and the channels' names where only the files have them."""
    channels = asked.data.channels or listing.channels
    return attrs.evolve(asked, task=listing.task or asked.task, data=attrs.evolve(asked.data, channels=channels))


def _names_given(asked: DataPlan, listing: Listing) -> tuple[str, ...]:
    """Return the user's names for channels that the files only number: one per channel, and none a number."""
    wanted = asked.data.channels
    names = asked.names if wanted and set(wanted) < set(asked.names) else wanted
    if not names or not listing.numbered or any(name in listing.channels for name in names):
        return ()
    if len(names) != len(listing.channels):
        raise DataError(
            f"{len(names)} names for {len(listing.channels)} channels of {asked.name!r}: {', '.join(names)}. Its files "
            f"do not name channels; name all of them, in their order, or choose by number "
            f"({', '.join(listing.channels)})."
        )
    return names


def find_root(asked: DataPlan) -> Path:
    """Return the folder of this data set: its own root, or its folder in the data root."""
    if asked.data.root is not None:
        return asked.data.root.expanduser()
    return dataset_folder(data_root(asked.data.data_root), asked.name)


def _not_there(dataset: Dataset, root: Path) -> str:
    """Write three lines: what is missing, and the command for each way to get it."""
    publisher = f"get it from {dataset.homepage or 'its owner'}"
    get = f"`clocs data download {dataset.name}`" if dataset.sources else publisher
    return (
        f"Data set {dataset.name!r} is not at {root}.\n"
        f"  If you have it:  add `root=FOLDER`, or put it in {dataset.name}/ of `data_root=FOLDER` or CLOCS_DATA\n"
        f"  If you do not:   {get}"
    )


def _only_class(asked: DataPlan, listing: Listing) -> str:
    """Say that all labelled recordings have one class or one value, which leaves nothing to score; else ""."""
    task, kind = asked.task, kind_of(asked.task)
    only = kind.nothing_to_tell({value for entry in listing.entries for value in kind.values(entry.label)}, task)
    if not only:
        return ""
    return (
        f"all labelled recordings of {asked.name!r} have one {kind.noun} for {task.name!r} ({only}), so there is "
        f"nothing to tell apart: add recordings of another {kind.noun}, or choose another `task`"
    )


def prepare_recordings(asked: DataPlan, listing: Listing, framing: Framing, workers: Workers, tick: Tick) -> Prepared:
    """Prepare the frames of recordings below the data root; runs with the same framing share them.

    Of files that name their channels, those that all recordings have are prepared, in this order.
    """
    dataset = asked.dataset.offer
    recipe = Recipe(
        dataset=dataset.name,
        entries=listing.entries,
        load=dataset.load,
        options=asked.dataset.options,
        framing=framing,
        revision=dataset.revision,
        channels=dataset.channels or (() if listing.numbered else listing.channels),
    )
    return prepare(recipe, data_root(asked.data.data_root) / "prepared" / dataset.name, workers, tick)
