"""The tiny data set as a cohort, and embeddings of its frames out of nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tiny_frames import CHANNELS, TASK, tiny_entries, tiny_prepared

from clocs_core.contracts.records import TOGETHER, Drop, Listing
from clocs_core.data.cohort import Cohort
from clocs_core.data.splits import split_patients
from clocs_core.data.store import fill_store, list_instances
from clocs_core.evaluation.features import Features
from clocs_core.inference.embed import Representations
from clocs_core.inference.rows import Rows

CPU = torch.device("cpu")


def tiny_cohort(folder: Path) -> Cohort:
    """The tiny data set, divided by patient, and a recording that was left out."""
    entries = tiny_entries()
    prepared = tiny_prepared(folder, entries)
    listing = Listing(entries, [Drop("no signal", "r9-9")])
    split = split_patients((entry.patient for entry in entries), 0, "60/20/20")
    return Cohort(listing, split, prepared, prepared, CHANNELS, TASK)


def representations(
    cohort: Cohort, seed: int = 0, together: bool = False, embedding: NDArray[np.float64] | None = None
) -> Representations:
    """Random embeddings of all usable frames."""
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
