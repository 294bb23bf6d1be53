"""Numbers in standard deviations around their mean, as far as the labels of training batches have told them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from clocs_core import Ranks


class AnswerScale(nn.Module):
    """Mean and standard deviation of all labels seen in training: after an epoch, those of the training instances.

    So the same recordings train the same encoder whatever the unit of the labels, and the loss of any unit is of one
    size. An objective is built before any label is known, so both are learnt as batches come; `ScaledLinear`, the head
    of fine-tuning, gets them beforehand. Sums are merged batch by batch after Chan, Golub and LeVeque (1979), which
    keeps digits of a variance that is small against the mean.
    """

    count: Tensor  # (): labels seen
    mean: Tensor  # ()
    square: Tensor  # (): sum of the squared distances from the mean

    def __init__(self) -> None:
        super().__init__()
        for name in ("count", "mean", "square"):
            self.register_buffer(name, torch.zeros(()))

    @torch.no_grad()
    def forward(self, label: Tensor, ranks: Ranks | None = None) -> Tensor:
        """Return labels (batch,) in standard deviations around the mean; NaN stays. In training, learn from them first.

        ranks: the processes that share the batch.
        """
        if self.training:
            self._see(label.to(self.mean.dtype), ranks)
        sd = torch.where(self.square > 0, (self.square / self.count.clamp(min=1)).sqrt(), 1.0)
        return (label - self.mean) / sd

    def _see(self, label: Tensor, ranks: Ranks | None) -> None:
        """Merge the labels of a batch into the sums, in place and without a wait for the device."""
        known = ~label.isnan()

        def total(values: Tensor) -> Tensor:
            own = torch.where(known, values, 0).sum()
            return own if ranks is None else ranks.sum(own)

        count = total(torch.ones_like(label))
        mean = total(label) / count.clamp(min=1)
        square = total((label - mean) ** 2)
        whole, apart = self.count + count, mean - self.mean
        share = count / whole.clamp(min=1)
        self.square.add_(square + apart**2 * self.count * share)
        self.mean.add_(apart * share)
        self.count.copy_(whole)
