"""The tiny data set as a cohort with a hand-made split, and the loss of a classifier on it, written in loops."""

from __future__ import annotations

import attrs
import torch
from tiny_frames import CHANNELS, FRAME, TASK, tiny_entries, tiny_prepared
from torch import nn

from clocs_core.artifacts.split import Split
from clocs_core.contracts.records import Listing, Task
from clocs_core.data.cohort import Cohort

PARTS = {f"p{n}": part for n, part in enumerate(("train", "train", "train", "train", "validation", "test"))}
DIM = 5  # of a representation
ANY_OF = Task("kind", classes=TASK.classes, kind="any_of")


def tiny_divided(folder, without=(), task=TASK):
    """Make six patients with two recordings each; the records named in `without` have no label."""
    labels = {
        entry.record: entry.label if task.kind == "one_of" else frozenset({entry.label}) for entry in tiny_entries()
    }
    labels |= dict.fromkeys(without)
    entries = [attrs.evolve(entry, label=labels[entry.record]) for entry in tiny_entries()]
    prepared = tiny_prepared(folder)
    return Cohort(Listing(entries), Split(PARTS, 0, "60/20/20"), prepared, prepared, CHANNELS, task)


def simple_encoder(seed=0, dropout=0.0):
    """Make an encoder of a frame of one channel to DIM numbers."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(FRAME, DIM), nn.Tanh(), nn.Dropout(dropout))


def signals_and_labels(bench, part, rows):
    """Return signals and labels frame by frame, as the store has them."""
    store, instances = bench.store, bench.parts[part]
    signals, labels = [], []
    for row in rows:
        frame, channel = int(instances.frame[row, 0]), int(instances.channel[row, 0])
        signals.append(store.signal[frame, store.column[channel]].float() / store.gain[frame])
        labels.append(store.label[frame])
    return torch.stack(signals)[:, None], torch.stack(labels)


def loss_in_loops(logits, labels):
    """Return the cross-entropy of the true class, or the mean of the binary cross-entropies of all classes."""
    total = 0.0
    for row, label in zip(logits, labels, strict=True):
        if label.dim() == 0:
            total = total - (row[label].exp() / row.exp().sum()).log()
        else:
            terms = [p if one == 1 else 1 - p for p, one in zip(1 / (1 + (-row).exp()), label, strict=True)]
            total = total - sum(term.log() for term in terms) / len(terms)
    return total / len(labels)
