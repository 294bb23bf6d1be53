"""The objective of VICReg: the loss, and the expander, which is trained with the encoder and then discarded.

The paper's expander has two linear layers with BatchNorm and ReLU and a third without, each 8192 wide: four times its
representations of 2048. The default here is 512, four times 128, with 0.6 million parameters instead of 135.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from torch import nn

from clocs_plugins.vicreg.vicreg import vicreg

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Views


class VICReg(nn.Module):
    """VICReg as an objective. Checkpoints contain the names of its modules: expander.0.linear, expander.0.norm, …"""

    def __init__(
        self, embedding_dim: int, *, expander: Sequence[int], invariance: float, variance: float, covariance: float
    ) -> None:
        super().__init__()
        self.weights = (invariance, variance, covariance)
        self.expander = _expander(embedding_dim, expander)

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views) -> Tensor:
        """Compute the loss of one batch, over all pairs of views or the chosen ones."""
        representation = encode(views.signal)  # (view, batch, embedding_dim)
        # All views in one call, as in the encoder: BatchNorm then sees two rows even in a batch of one.
        z = self.expander(representation.flatten(0, 1)).unflatten(0, representation.shape[:2])  # (view, batch, dim)
        return vicreg(z, *self.weights, pairs=views.pairs)


def _expander(embedding_dim: int, widths: Sequence[int]) -> nn.Sequential:
    """Build layers of these widths, with BatchNorm and ReLU after each but the last; no widths: the identity.

    Layers have no bias: BatchNorm cancels it, and the loss does not depend on the mean of its input.
    """
    layers = [_layer(before, after) for before, after in pairwise((embedding_dim, *widths))]
    return nn.Sequential(*layers[:-1], *(layer[:1] for layer in layers[-1:]))


def _layer(before: int, after: int) -> nn.Sequential:
    linear, norm = nn.Linear(before, after, bias=False), nn.BatchNorm1d(after)
    return nn.Sequential(OrderedDict(linear=linear, norm=norm, relu=nn.ReLU()))
