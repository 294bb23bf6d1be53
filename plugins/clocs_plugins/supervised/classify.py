"""Supervised pre-training, after the CLOCS paper (ICML 2021), appendix C: "solving a supervised classification task".

The paper's layer 5 is a linear layer from the embedding to the classes. Its loss is the cross-entropy where a frame
is of one class, and the mean over classes of the binary cross-entropy where it can be of any. Frames without a label
do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Task, Views

__all__ = ["Classify", "any_of_loss", "one_of_loss"]


class Classify(nn.Module):
    """The objective: a linear classifier of each view, by the label of its instance."""

    def __init__(self, task: Task, embedding_dim: int) -> None:
        super().__init__()
        least = 2 if task.kind == "one_of" else 1
        if len(task.classes) < least:
            raise ValueError(
                f"the task {task.name!r} has {len(task.classes)} classes, and {least} or more are needed to learn "
                "from labels. Choose another task or data set, or a method that needs no labels."
            )
        self.head = nn.Linear(embedding_dim, len(task.classes))
        self.loss = one_of_loss if task.kind == "one_of" else any_of_loss

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views) -> Tensor:
        """The loss of one batch. Raises ValueError where it comes without labels, or with those of another task."""
        if views.batch.label is None:
            raise ValueError(
                "the objective `classify` got a batch without labels. Use a data set that has them, or a method that "
                "needs none."
            )
        logits = self.head(encode(views.signal))  # (view, batch, class)
        return self.loss(logits, views.batch.label)


def one_of_loss(logits: Tensor, label: Tensor) -> Tensor:
    """The mean cross-entropy of logits (view, batch, class) with labels (batch,), -1 for none; 0 where none has one.

    Computed in float32, or float64 where the logits are float64, autocast or not.
    """
    views, batch = logits.shape[:2]
    _refuse_other_shape(label, (batch,))
    log_probability = _at_least_float32(logits).log_softmax(-1)  # (view, batch, class)
    each = label.expand(views, batch).flatten()  # (view * batch,)
    total = F.nll_loss(log_probability.flatten(0, 1), each, ignore_index=-1, reduction="sum")
    return total / (views * (label >= 0).sum()).clamp(min=1)  # none has a label: nothing to divide


def any_of_loss(logits: Tensor, label: Tensor) -> Tensor:
    """The mean binary cross-entropy of logits (view, batch, class) with labels (batch, class) of 0 and 1.

    A row with a NaN has no label and does not count; the loss is 0 where all are so. Computed as above.
    """
    _refuse_other_shape(label, tuple(logits.shape[1:]))
    logits = _at_least_float32(logits)
    counts = ~label.isnan().any(-1)  # (batch,)
    answer = label.nan_to_num(0.0).to(logits.dtype).expand_as(logits)  # (view, batch, class)
    frame = F.binary_cross_entropy_with_logits(logits, answer, reduction="none").mean((0, 2))  # (batch,)
    return (frame * counts).sum() / counts.sum().clamp(min=1)


def _at_least_float32(logits: Tensor) -> Tensor:
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _refuse_other_shape(label: Tensor, expected: tuple[int, ...]) -> None:
    found = tuple(label.shape)
    if found != expected:
        raise ValueError(
            f"the objective `classify` got labels of shape {found}, expected {expected}: they are of another task"
        )
