"""Frames of fake recordings: prepared, in a store, divided into parts, embedded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np
import torch
from fake_recordings import CHANNELS, FakeOptions, fake_entries, fake_load
from numpy.typing import NDArray

from clocs_core.artifacts.split import Split
from clocs_core.contracts.records import TOGETHER, Drop, Entry, Framing, Label, Listing, Part, Record, Task
from clocs_core.data.cohort import Cohort
from clocs_core.data.preparation import prepare
from clocs_core.data.prepared import Prepared
from clocs_core.data.recipe import Recipe
from clocs_core.data.store import Store, fill_store, list_instances
from clocs_core.evaluation.features import Features
from clocs_core.inference.embed import Representations
from clocs_core.inference.rows import Rows

CPU = torch.device("cpu")
TASK = Task("kind", classes=("a", "b", "c"))
ANY_OF = Task("kind", classes=TASK.classes, kind="any_of")
AGE = Task("age", kind="number", unit="years")
FRAME = 50  # samples
FOUR_FRAMES = FakeOptions(samples=4 * FRAME + 7, channels=len(CHANNELS), flat="r1-0")
_PART_OF: tuple[Part, ...] = ("train", "train", "train", "train", "validation", "test")
PARTS = {f"p{n}": part for n, part in enumerate(_PART_OF)}


def fake_prepared(
    folder: Path,
    entries: Sequence[Entry] | None = None,
    options: FakeOptions = FOUR_FRAMES,
    load: Callable[[Entry, FakeOptions], Record] = fake_load,
) -> Prepared:
    """Prepare the recordings of six patients, or others."""
    recipe = Recipe(
        dataset="tiny",
        entries=entries or fake_entries(),
        load=load,
        options=options,
        framing=Framing(frame_samples=FRAME),
        channels=CHANNELS,
    )
    return prepare(recipe, folder, 1, lambda done, total: None)


def fake_store(
    prepared: Prepared,
    channels: Sequence[str] = CHANNELS,
    task: Task = TASK,
    labels: Mapping[str, Label] | None = None,
    device: torch.device = CPU,
) -> Store:
    labels = labels or {entry.record: entry.label for entry in fake_entries()}
    return fill_store(prepared, labels, task, channels, device)


def fake_cohort(folder: Path, without: Iterable[str] = (), task: Task = TASK) -> Cohort:
    """Divide six patients by PARTS. Records named in `without` have no label, and r9-9 was left out."""
    labels: dict[str, Label] = {}
    for entry in fake_entries():
        assert isinstance(entry.label, int)
        kinds: dict[str, Label] = {"any_of": frozenset({entry.label}), "number": 60.0 + 7.5 * entry.label}
        labels[entry.record] = kinds.get(task.kind, entry.label)
    labels |= dict.fromkeys(without)
    listing = Listing(
        [attrs.evolve(entry, label=labels[entry.record]) for entry in fake_entries()], [Drop("no signal", "r9-9")]
    )
    prepared = fake_prepared(folder)
    return Cohort(listing, Split(PARTS, 0, "60/20/20"), prepared, prepared, CHANNELS, task)


def fake_representations(
    cohort: Cohort, seed: int = 0, together: bool = False, embedding: NDArray[np.float64] | None = None
) -> Representations:
    """Return random embeddings of all usable frames, or those given."""
    store = fill_store(cohort.evaluate, cohort.labels, TASK, CHANNELS, CPU)
    patients = frozenset(cohort.split.parts)
    instances, _ = list_instances(cohort.evaluate, patients, CHANNELS, 1, together, CPU)
    frame = instances.frame[:, 0].numpy()
    if embedding is None:
        embedding = np.random.default_rng(seed).normal(size=(len(frame), 3))
    ids = (store.label.numpy()[frame], store.patient.numpy()[frame], store.record.numpy()[frame])
    channel = np.full(len(frame), TOGETHER) if together else instances.channel[:, 0].numpy()
    features = Features(embedding.astype(np.float32), *ids)
    start = cohort.evaluate.start[frame]
    return Representations(Rows(features, channel, frame, start, store.patients, store.records, CHANNELS), cohort)
