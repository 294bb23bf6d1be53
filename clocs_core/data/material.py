"""From a plan to frames on disk: scan, split by patient, prepare. What a run is given to work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from clocs_core.data.preparation import prepare
from clocs_core.data.prepared import Prepared
from clocs_core.data.records import Entry, Framing, Label, Listing, Task
from clocs_core.data.splits import Split, published_split, split_patients
from clocs_core.errors import DataError, DataNotFound
from clocs_core.extend.offers import Dataset
from clocs_core.extend.plan import Plan
from clocs_core.settings import data_root

__all__ = ["Material", "get_material", "scan"]

Tick = Callable[[int, int], None]


@attrs.frozen(eq=False)
class Material:
    """The recordings of a run: what was found, who is in which part, and the frames for both halves of the story."""

    listing: Listing
    split: Split
    pretrain: Prepared
    evaluate: Prepared
    channels: tuple[str, ...]
    task: Task

    @property
    def labels(self) -> dict[str, Label]:
        """The label of each record, by its id."""
        return {entry.record: entry.label for entry in self.listing.entries}

    @property
    def has_labels(self) -> bool:
        """Whether any recording is labelled for the task."""
        return any(entry.label is not None for entry in self.listing.entries)


def get_material(plan: Plan, workers: int, tick: Tick) -> Material:
    """Find, divide and prepare the recordings of a plan. What is prepared already is only opened.

    The split is made here, before any framing, over the patients with an entry: it depends on the data set, the
    task and the split seed, never on method, channels or frame length.
    """
    listing = scan(plan)
    plan = _settled(plan, listing)
    _refuse_one_class(plan, listing)
    if listing.parts is not None:
        split = published_split(listing.parts, plan.data.split_seed)
    else:
        split = split_patients((entry.patient for entry in listing.entries), plan.data.split_seed, plan.data.split)
    pretrain = _prepare(plan, listing.entries, plan.pretrain_framing, workers, tick)
    same = plan.pretrain_framing == plan.evaluate_framing
    evaluate = pretrain if same else _prepare(plan, listing.entries, plan.evaluate_framing, workers, tick)
    channels = plan.data.channels or pretrain.channels
    missing = [name for name in channels if name not in pretrain.channels]
    if missing:
        raise DataError(
            f"Channel {missing[0]!r} was asked for, but the recordings of {plan.dataset.offer.name!r} have "
            f"{', '.join(pretrain.channels)}."
        )
    return Material(listing, split, pretrain, evaluate, channels, plan.task)


def scan(plan: Plan) -> Listing:
    """List the recordings. Raises DataNotFound where the data set is not on this machine."""
    dataset = plan.dataset.offer
    root = _root(plan)
    if not dataset.embedded and not root.exists():
        raise DataNotFound(_not_there(dataset, root))
    listing = dataset.scan(root, plan.task, plan.dataset.options)
    if not listing.entries:
        dropped = (
            f"; it left out {len(listing.drops)}, the first because: {listing.drops[0].reason}" if listing.drops else ""
        )
        raise DataError(
            f"No usable recording of {dataset.name!r} in {root}{dropped}. Point `--root` at the folder that was "
            "downloaded and unpacked."
        )
    return listing


def _settled(plan: Plan, listing: Listing) -> Plan:
    """The plan with what only the files could tell: the task's classes, the channels' names."""
    channels = plan.data.channels or listing.channels
    return attrs.evolve(plan, task=listing.task or plan.task, data=attrs.evolve(plan.data, channels=channels))


def _root(plan: Plan) -> Path:
    if plan.data.root is not None:
        return Path(plan.data.root).expanduser()
    return data_root(plan.data.data_root) / plan.dataset.offer.name


def _not_there(dataset: Dataset, root: Path) -> str:
    return (
        f"Data set {dataset.name!r} is not at {root}.\n"
        "  If you have it:   point at it with `--root FOLDER`\n"
        f"  If you keep data elsewhere:   `--data-root FOLDER` or CLOCS_DATA, with {dataset.name}/ inside"
    )


def _refuse_one_class(plan: Plan, listing: Listing) -> None:
    seen: set[int] = set()
    for entry in listing.entries:
        seen |= _classes(entry.label)
    if len(seen) == 1 and plan.task.kind == "one_of":
        only = plan.task.classes[next(iter(seen))]
        raise DataError(
            f"All labelled recordings of {plan.dataset.offer.name!r} have one class for {plan.task.name!r} ({only}), "
            "so there is nothing to tell apart: add recordings of another class, or choose another `--task`."
        )


def _classes(label: Label) -> set[int]:
    if label is None:
        return set()
    if isinstance(label, int):
        return {label}
    return {one if isinstance(one, int) else one.label for one in label}


def _prepare(plan: Plan, entries: Sequence[Entry], framing: Framing, workers: int, tick: Tick) -> Prepared:
    dataset = plan.dataset.offer
    return prepare(
        entries,
        dataset.load,
        plan.dataset.options,
        framing,
        dataset=dataset.name,
        revision=dataset.revision,
        channels=dataset.channels,
        folder=data_root(plan.data.data_root) / "prepared" / dataset.name,
        workers=workers,
        progress=tick,
    )
