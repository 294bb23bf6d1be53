"""A network between embedding and loss, which is trained with the encoder and never evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clocs_core.settings.sections import Autocast


class Projector(nn.Module):
    """Maps embeddings (..., dim) to (..., last width): a linear layer of each width, BatchNorm and ReLU between them.

    per_view: normalise each view by itself, as `per_view` of training does in the encoder. autocast: as in training.
    """

    def __init__(
        self, embedding_dim: int, widths: Sequence[int], per_view: bool = False, autocast: Autocast = "none"
    ) -> None:
        super().__init__()
        self.per_view, self.autocast = per_view, autocast
        self.layers = nn.Sequential()
        for place, (before, after) in enumerate(pairwise((embedding_dim, *widths)), start=1):
            last = place == len(widths)
            self.layers.append(nn.Linear(before, after, bias=last))  # elsewhere BatchNorm cancels a bias
            if not last:
                self.layers.extend([RowNorm(after), nn.ReLU()])

    def forward(self, z: Tensor) -> Tensor:
        """Project embeddings (n, dim), or those of several views (view, batch, dim)."""
        if self.per_view and z.ndim > 2:
            return torch.stack([self(view) for view in z])
        with torch.autocast(z.device.type, torch.bfloat16, enabled=self.autocast == "bf16"):
            rows: Tensor = self.layers(z.flatten(0, -2))  # (view * batch, width)
        spread: Tensor = rows.to(z.dtype).unflatten(0, z.shape[:-1])
        return spread


class RowNorm(nn.BatchNorm1d):
    """BatchNorm that also takes a single row, such as a last batch of one, which has no deviation of its own."""

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise rows (n, width), a single one by the running statistics."""
        if len(rows) > 1:
            return super().forward(rows)
        return F.batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
