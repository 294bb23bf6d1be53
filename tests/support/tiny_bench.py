"""The tiny data set as a cohort with a split by hand, and what a classifier on it costs, written in loops."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs
import torch
from tiny_frames import CHANNELS, FRAME, TASK, tiny_entries, tiny_prepared
from torch import Tensor, nn

from clocs_core.artifacts.split import Split
from clocs_core.contracts.records import Label, Listing, Part, Task
from clocs_core.data.cohort import Cohort
from clocs_core.evaluation.labelled_frames import LabelledFrames

_PART_OF: tuple[Part, ...] = ("train", "train", "train", "train", "validation", "test")
PARTS = {f"p{n}": part for n, part in enumerate(_PART_OF)}
DIM = 5  # of a representation
ANY_OF = Task("kind", classes=TASK.classes, kind="any_of")


def tiny_divided(folder: Path, without: Iterable[str] = (), task: Task = TASK) -> Cohort:
    """Six patients of two recordings; the records named in `without` have no label."""
    labels: dict[str, Label] = {}
    for entry in tiny_entries():
        assert isinstance(entry.label, int)
        labels[entry.record] = entry.label if task.kind == "one_of" else frozenset({entry.label})
    labels |= dict.fromkeys(without)
    entries = [attrs.evolve(entry, label=labels[entry.record]) for entry in tiny_entries()]
    prepared = tiny_prepared(folder)
    return Cohort(Listing(entries), Split(PARTS, 0, "60/20/20"), prepared, prepared, CHANNELS, task)


def simple_encoder(seed: int = 0, dropout: float = 0.0) -> nn.Sequential:
    """Of a frame of one channel to DIM numbers."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(FRAME, DIM), nn.Tanh(), nn.Dropout(dropout))


def signals_and_labels(bench: LabelledFrames, part: Part, rows: Iterable[int]) -> tuple[Tensor, Tensor]:
    """Frame by frame, as the store has them."""
    store, instances = bench.store, bench.parts[part]
    signals, labels = [], []
    for row in rows:
        frame, channel = int(instances.frame[row, 0]), int(instances.channel[row, 0])
        signals.append(store.signal[frame, store.column[channel]].float() / store.gain[frame])
        labels.append(store.label[frame])
    return torch.stack(signals)[:, None], torch.stack(labels)


def loss_in_loops(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the class that is, or the mean over classes of that of each."""
    total = logits.new_zeros(())
    for row, label in zip(logits, labels, strict=True):
        if label.dim() == 0:
            total = total - (row[label].exp() / row.exp().sum()).log()
        else:
            terms = [p if one == 1 else 1 - p for p, one in zip(1 / (1 + (-row).exp()), label, strict=True)]
            total = total - sum(term.log() for term in terms) / len(terms)
    return total / len(labels)
