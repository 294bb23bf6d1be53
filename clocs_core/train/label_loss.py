"""Losses of logits and frame labels, shared by fine-tuning and plugins.

They are part of the public API, which imports no torch; so torch is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from clocs_core.contracts.kinds import kind_of

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core.contracts.records import Task

LabelLoss: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
"""(logits (view, batch, output), labels as in `Batch`) -> scalar; frames without a label do not count."""


def label_loss(task: Task) -> LabelLoss:
    """Return the loss for a task's kind. Raise ValueError if the task has too few classes."""
    least = kind_of(task).least
    if len(task.outputs) < least:
        raise ValueError(
            f"the task {task.name!r} has {len(task.classes)} classes, and {least} or more are needed to learn from "
            "labels. Choose another task or data set, or a method that needs no labels."
        )
    return LOSSES[task.kind]


def one_of_loss(logits: Tensor, label: Tensor) -> Tensor:
    """Compute the mean cross-entropy of logits (view, batch, class) with labels (batch,); -1 means no label.

    The loss is 0 if no frame has a label. Computed in float32, or in float64 for float64 logits, also under autocast.
    """
    from torch.nn import functional as F

    views, batch = logits.shape[:2]
    _refuse_other_shape(label, (batch,))
    log_probability = _at_least_float32(logits).log_softmax(-1)  # (view, batch, class)
    each = label.expand(views, batch).flatten()  # (view * batch,)
    total = F.nll_loss(log_probability.flatten(0, 1), each, ignore_index=-1, reduction="sum")
    return total / (views * (label >= 0).sum()).clamp(min=1)  # clamp: no division by zero without labels


def any_of_loss(logits: Tensor, label: Tensor) -> Tensor:
    """Compute the mean binary cross-entropy of logits (view, batch, class) with labels (batch, class) of 0 and 1.

    A row with a NaN has no label and does not count. The loss is 0 without any label. Precision as in `one_of_loss`.
    """
    from torch.nn import functional as F

    _refuse_other_shape(label, tuple(logits.shape[1:]))
    logits = _at_least_float32(logits)
    counts = ~label.isnan().any(-1)  # (batch,)
    answer = label.nan_to_num(0.0).to(logits.dtype).expand_as(logits)  # (view, batch, class)
    frame = F.binary_cross_entropy_with_logits(logits, answer, reduction="none").mean((0, 2))  # (batch,)
    return (frame * counts).sum() / counts.sum().clamp(min=1)


def number_loss(values: Tensor, label: Tensor) -> Tensor:
    """Compute the mean squared error of values (view, batch, 1) for labels (batch,); NaN means no label.

    The loss is 0 without any label. Precision as in `one_of_loss`.
    """
    views, batch = values.shape[:2]
    _refuse_other_shape(label, (batch,))
    values = _at_least_float32(values)[..., 0]  # (view, batch)
    counts = ~label.isnan()  # (batch,)
    square = (values - label.nan_to_num(0.0).to(values.dtype)) ** 2 * counts
    return square.sum() / (views * counts.sum()).clamp(min=1)


LOSSES: dict[str, LabelLoss] = {"one_of": one_of_loss, "any_of": any_of_loss, "number": number_loss}
"""The loss of each kind of task."""


def _at_least_float32(logits: Tensor) -> Tensor:
    import torch

    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _refuse_other_shape(label: Tensor, expected: tuple[int, ...]) -> None:
    found = tuple(label.shape)
    if found != expected:
        raise ValueError(f"the loss got labels of shape {found}, expected {expected}: they are of another task")
