"""Supervised pre-training, after the CLOCS paper (ICML 2021), appendix C: "solving a supervised classification task".

The paper's layer 5 is a linear layer from the embedding to the classes. Its loss is the cross-entropy for one-of tasks,
and the mean over classes of the binary cross-entropy for any-of tasks. A number, which the paper has not, is learnt by
its squared error in standard deviations of the training labels. Frames without a label do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import nn

from clocs_core import label_loss
from clocs_plugins.supervised.answer_scale import AnswerScale

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Ranks, Task, Views


class Classify(nn.Module):
    """The objective: a linear classifier of each view, trained on the label of its instance."""

    def __init__(self, task: Task, embedding_dim: int) -> None:
        super().__init__()
        self.loss = label_loss(task)
        self.head = nn.Linear(embedding_dim, len(task.outputs))
        self.scale = AnswerScale() if task.kind == "number" else None

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views, ranks: Ranks | None = None) -> Tensor:
        """Compute the loss of one batch. Raise ValueError without labels, or with those of another task.

        ranks: the processes that share the batch.
        """
        if views.batch.label is None:
            raise ValueError(
                "the objective `classify` got a batch without labels. Use a data set that has them, or a method that "
                "needs none."
            )
        label = views.batch.label if self.scale is None else self.scale(views.batch.label, ranks)
        logits = self.head(encode(views.signal))  # (view, batch, class)
        loss = self.loss(logits, label)
        return loss if ranks is None else loss * _share_of_labels(label, ranks).to(loss.dtype)


def _share_of_labels(label: Tensor, ranks: Ranks) -> Tensor:
    """Return the share of this process in the labelled instances of the whole batch; 0 without any."""
    missing = label.isnan() if label.is_floating_point() else label < 0  # (batch,) or (batch, class)
    missing = missing.any(-1) if missing.ndim > 1 else missing
    own = (~missing).sum().double()  # not float32: a third of float64 would be rounded
    return own / ranks.sum(own).clamp(min=1)
