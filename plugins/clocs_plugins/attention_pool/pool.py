"""Pool the sequence of a frozen encoder by attention.

A query q and a linear layer are learnt. The weight of position t is the softmax over t of q . h[t] / sqrt(width), where
h is the sequence after LayerNorm; the linear layer reads the weighted mean of h.
"""

from __future__ import annotations

import copy
import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from clocs_core import Features, Trial, label_loss
from clocs_plugins.attention_pool.sequences import compute, reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from clocs_plugins.attention_pool import PoolOptions


class AttentionPool(nn.Module):
    """A query over positions (n, time, width), and a linear layer to outputs (n, output)."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query = nn.Parameter(torch.zeros(width))  # zeros: it begins as the mean over time
        self.linear = nn.Linear(width, outputs)

    def forward(self, sequence: Tensor) -> Tensor:
        """Return logits, or numbers in deviations of the training labels."""
        held = self.norm(sequence)
        weight = (held @ self.query / math.sqrt(held.shape[-1])).softmax(1)  # (n, time)
        found: Tensor = self.linear((weight[..., None] * held).sum(1))  # (n, output)
        return found


def train_pool(options: PoolOptions, trial: Trial) -> tuple[NDArray[np.float64], int]:
    """Return the predictions of the scored rows (n, output), and the epoch whose weights are used."""
    assert trial.encoder is not None  # the offer wants the encoder, and the validation rows
    assert trial.validation is not None
    pool = AttentionPool(int(trial.encoder.width), len(trial.task.outputs)).to(trial.device)  # type: ignore[arg-type]
    optimiser = torch.optim.AdamW(pool.parameters(), options.learning_rate, weight_decay=options.weight_decay)
    loss, order = label_loss(trial.task), torch.Generator().manual_seed(trial.seed)
    mean, deviation = _scale(trial)
    known, checked = (_labels(rows, trial, mean, deviation) for rows in (trial.train, trial.validation))
    batch = options.batch_size
    train, validation = (
        reader(trial, part, len(rows), batch) for part, rows in (("train", known), ("validation", checked))
    )
    best, best_epoch, lowest = copy.deepcopy(pool.state_dict()), 0, math.inf
    for epoch in range(1, options.epochs + 1):
        for rows in torch.randperm(len(known), generator=order).split(batch):
            optimiser.zero_grad()
            loss(pool(train(rows))[None], known[rows.to(trial.device)]).backward()
            optimiser.step()
        value = float(loss(_outputs(pool, validation, len(checked), batch)[None], checked))  # sync point
        if value < lowest:
            best, best_epoch, lowest = copy.deepcopy(pool.state_dict()), epoch, value
        elif epoch - best_epoch >= options.patience:
            break
    pool.load_state_dict(best)
    found = _outputs(pool, partial(compute, trial, "scored"), len(trial.scored), batch).double()
    if trial.task.kind == "number":
        found = mean + deviation * found
    else:
        found = found.softmax(1) if trial.task.kind == "one_of" else found.sigmoid()
    return found.cpu().numpy(), best_epoch


def _outputs(pool: AttentionPool, read: Callable[[Tensor], Tensor], count: int, batch_size: int) -> Tensor:
    """Return the outputs of the first `count` rows (n, output)."""
    with torch.no_grad():
        return torch.cat([pool(read(rows)) for rows in torch.arange(count).split(batch_size)])


def _scale(trial: Trial) -> tuple[float, float]:
    """Return the mean and the deviation of numbers to learn; 0 and 1 for classes, and where all numbers are equal."""
    if trial.task.kind != "number":
        return 0.0, 1.0
    return float(trial.train.label.mean(dtype=np.float64)), float(trial.train.label.std(dtype=np.float64)) or 1.0


def _labels(rows: Features, trial: Trial, mean: float, deviation: float) -> Tensor:
    """Return labels as `label_loss` takes them, on the device: classes, 0 and 1 of each class, or scaled numbers."""
    label = torch.from_numpy(rows.label).to(trial.device)
    if trial.task.kind == "number":
        return (label - mean) / deviation
    return label if trial.task.kind == "one_of" else label.float()
