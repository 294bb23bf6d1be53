"""A tiny prepared data set and the objects around it, for tests of the steps after preparation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np
import torch

from clocs_core.contracts.records import Entry, Framing, Label, Record, Task
from clocs_core.data.preparation import prepare
from clocs_core.data.prepared import Prepared
from clocs_core.data.store import Store, fill_store

TASK = Task("kind", classes=("a", "b", "c"))
CHANNELS = ("X", "Y", "Z")
FRAME = 50


@attrs.frozen
class TinyOptions:
    """The number of frames of each recording; recording 2 has a flat channel Y in its first frame."""

    frames: int = 4


def tiny_entries(patients: int = 6, recordings: int = 2) -> list[Entry]:
    return [
        Entry(record=f"r{patient}-{visit}", patient=f"p{patient}", label=patient % len(TASK.classes))
        for patient in range(patients)
        for visit in range(recordings)
    ]


def tiny_load(entry: Entry, options: TinyOptions) -> Record:
    """Return noise around a level that is the class, so that a classifier can learn it."""
    rng = np.random.default_rng([ord(letter) for letter in entry.record])
    assert isinstance(entry.label, int)
    samples = rng.normal(entry.label, 1.0, (len(CHANNELS), FRAME * options.frames + 7)).astype(np.float32)
    if entry.record == "r1-0":
        samples[1, :FRAME] = 3.0
    return Record(entry.patient, entry.record, CHANNELS, "mV", 100.0, samples, entry.label)


def tiny_prepared(folder: Path, entries: Sequence[Entry] | None = None, frames: int = 4) -> Prepared:
    return prepare(
        entries or tiny_entries(),
        tiny_load,
        TinyOptions(frames),
        Framing(frame_samples=FRAME),
        dataset="tiny",
        revision=1,
        channels=CHANNELS,
        folder=folder,
        workers=1,
        progress=lambda done, total: None,
    )


def tiny_store(
    prepared: Prepared,
    channels: Sequence[str] = CHANNELS,
    task: Task = TASK,
    labels: Mapping[str, Label] | None = None,
) -> Store:
    labels = labels or {entry.record: entry.label for entry in tiny_entries()}
    return fill_store(prepared, labels, task, channels, torch.device("cpu"))
