"""Run a network from a file over frames of a prepared data set or of the user's files.

Embedding, predicting and searching all use this module. A row is a frame of one channel, or of all channels where the
network reads them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from clocs_core.artifacts.card import NetworkCard
from clocs_core.contracts.records import TOGETHER, Label, Task
from clocs_core.data.prepared import Prepared
from clocs_core.data.store import fill_store, list_instances
from clocs_core.evaluation.features import Features, embed
from clocs_core.inference.network import AsTrained, outputs_of
from clocs_core.inference.signals import Unsaid, name_files, read_own_frames
from clocs_core.progress import Display, Tick
from clocs_core.train.normalise import leave, normaliser
from clocs_core.train.ranks import Group


@attrs.frozen(eq=False)
class Rows:
    """The outputs of a network for frames, row by row, with each row's patient, record and channel as indices.

    features: outputs, labels, patients and records. channel: index into `channels`, or TOGETHER.
    frame: row of the prepared frames; for files, the number of the frame in its recording.
    start: the first sample of the frame in its recording, at the recording's own rate.
    """

    features: Features
    channel: NDArray[np.int64]  # (n,)
    frame: NDArray[np.int64]  # (n,)
    start: NDArray[np.int64]  # (n,)
    patients: tuple[str, ...]
    records: tuple[str, ...]
    channels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.features)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return record, patient, channel ("all" where read at once) and start of each row, by name."""
        return {
            "record": pick(self.records, self.features.record),
            "patient": pick(self.patients, self.features.patient),
            "channel": pick((*self.channels, "all"), self.channel),
            "start": self.start,
        }


def pick(names: Sequence[str], numbers: NDArray[np.int64]) -> NDArray[np.str_]:
    """Return the names at these indices (n,); -1 is the last one."""
    return np.array(names, dtype=np.str_)[numbers]


@attrs.frozen(eq=False)
class ChosenFrames:
    """Prepared frames that a network is to read, with the chosen patients and channels."""

    prepared: Prepared
    labels: Mapping[str, Label]  # by record
    task: Task
    channels: tuple[str, ...]
    patients: frozenset[str]


def run_on_frames(
    network: AsTrained,
    card: NetworkCard,
    frames: ChosenFrames,
    device: torch.device,
    tick: Tick,
    group: Group | None = None,
) -> Rows:
    """Run a network over every usable frame of some patients, in eval mode. There may be no frame.

    group: processes that share the work. Each gets the rows of all.
    """
    prepared, channels = frames.prepared, frames.channels
    store = fill_store(prepared, frames.labels, frames.task, channels, device)
    together = card.input_channels > 1
    instances, _ = list_instances(prepared, frames.patients, channels, 1, together, device)
    frame, channel = (column[:, 0].cpu().numpy() for column in (instances.frame, instances.channel))
    if len(instances):
        features = embed(network, store, instances, leave, tick, group)
    else:
        none = np.empty(0, np.int64)
        features = Features(np.empty((0, 0), np.float32), none, none, none)
    return Rows(
        features=features,
        channel=np.full(len(frame), TOGETHER) if together else channel,
        frame=frame,
        start=prepared.start[frame],
        patients=store.patients,
        records=store.records,
        channels=channels,
    )


def run_on_files(
    network: nn.Module,
    card: NetworkCard,
    paths: Sequence[Path],
    unsaid: Unsaid,
    device: torch.device,
    show: Display,
    doing: str,
) -> Rows:
    """Run a network over every usable frame of files. Each file is one recording, and counts as one patient.

    doing: the word that the display shows, such as "embedding".
    """
    names = name_files(paths)
    parts = []
    for number, (path, name) in enumerate(zip(paths, names, strict=True)):
        show.stage(f"{doing} {name}")
        before = 0  # frames of the earlier parts of a long recording
        for rows in read_own_frames(card, path, unsaid, show.say):
            if len(rows.frame):
                output = outputs_of(as_trained(network, card, rows.factor), rows.signal, device, show.tick)
                channel = np.full(len(output), TOGETHER) if card.input_channels > 1 else rows.channel
                parts.append((output, np.full(len(output), number), channel, before + rows.frame, rows.start))
            before += len(rows.starts)
    output, record, channel, frame, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    features = Features(output, np.full(len(output), -1), record, record)
    return Rows(features, channel, frame, start, names, names, rows.channels)


def as_trained(network: nn.Module, card: NetworkCard, factor: float = 1.0) -> AsTrained:
    """Wrap a network with the unit conversion and the normalisation of its card."""
    return AsTrained(network, normaliser(card.normalise, card.constant), factor)
