"""A small encoder to fine-tune, and the loss of a classifier on fake frames, written in loops."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from fake_frames import FRAME
from torch import Tensor, nn

from clocs_core.contracts.records import Part
from clocs_core.evaluation.labelled_frames import LabelledFrames

DIM = 5  # of an embedding


def simple_encoder(seed: int = 0, dropout: float = 0.0) -> nn.Sequential:
    """Return a network from a frame of one channel to DIM numbers."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(FRAME, DIM), nn.Tanh(), nn.Dropout(dropout))


def signals_and_labels(bench: LabelledFrames, part: Part, rows: Iterable[int]) -> tuple[Tensor, Tensor]:
    """Return the rows of a part frame by frame, as the store has them."""
    store, instances = bench.store, bench.parts[part]
    signals, labels = [], []
    for row in rows:
        frame, channel = int(instances.frame[row, 0]), int(instances.channel[row, 0])
        signals.append(store.signal[frame, store.column[channel]].float() / store.gain[frame])
        labels.append(store.label[frame])
    return torch.stack(signals)[:, None], torch.stack(labels)


def loss_in_loops(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of the true class; of a set of classes, its mean over all classes."""
    total = logits.new_zeros(())
    for row, label in zip(logits, labels, strict=True):
        if label.dim() == 0:
            total = total - (row[label].exp() / row.exp().sum()).log()
        else:
            terms = [p if one == 1 else 1 - p for p, one in zip(1 / (1 + (-row).exp()), label, strict=True)]
            total = total - sum(term.log() for term in terms) / len(terms)
    return total / len(labels)
