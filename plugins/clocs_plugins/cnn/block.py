"""A block of the paper's network as plain modules of torch: the reference for all other implementations."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

POOL = 2


class Block(nn.Sequential):
    """Convolution without padding, BatchNorm, ReLU, MaxPool(2), dropout: (n, before, sample) to (n, after, …)."""

    conv: nn.Conv1d
    norm: nn.BatchNorm1d
    dropout: nn.Dropout

    def __init__(self, before: int, after: int, kernel: int, stride: int, dropout: float) -> None:
        super().__init__(
            OrderedDict(
                conv=nn.Conv1d(before, after, kernel, stride),
                norm=nn.BatchNorm1d(after),
                relu=nn.ReLU(),
                pool=nn.MaxPool1d(POOL),
                dropout=nn.Dropout(dropout),
            )
        )
