"""Arrange the windows of a convolution as the rows of a matrix, so that one product gives all positions.

Features are stored as (signal, sample, channel): a window of `kernel` samples is contiguous, and the matrix is a copy
of overlapping windows. Even positions come first, then odd ones, so that a maximum over pairs of positions is the
maximum of two contiguous blocks.

A window of few values makes a thin matrix, which is slow to copy and to multiply. So a row may hold the overlapping
windows of several positions. The filters are then repeated `together` times in their matrix, each time further down:

    positions t and t + 2, kernel 7, stride 3      the row x[3t : 3t + 13] times  W 0
    gives (t, t + 2) side by side in memory                                       0 W   each W of 7 rows, 6 further down
"""

from __future__ import annotations

import attrs
import torch
from torch import Tensor

_THIN = 16
"""Shorter windows share a row: a product with rows of 7 values takes 2.5 ms, with 13 for two windows 2.0 ms."""


@attrs.frozen
class Windows:
    """The layout of the windows of a convolution without padding, over `signals` of `samples` with `channels` each."""

    signals: int
    samples: int
    channels: int
    kernel: int
    stride: int
    together: int = 1  # positions in a row of the matrix; it divides the number of even and of odd positions

    @property
    def positions(self) -> int:
        """Kernel positions per signal."""
        return (self.samples - self.kernel) // self.stride + 1

    @property
    def odd(self) -> int:
        """Odd positions per signal, which is the number of pairs: one even position may be left over."""
        return self.positions // 2

    @property
    def even(self) -> int:
        """Even positions per signal."""
        return self.positions - self.odd

    @property
    def apart(self) -> int:
        """Values from a window to the next one in its row."""
        return 2 * self.stride * self.channels

    @property
    def size(self) -> int:
        """Values in a window."""
        return self.kernel * self.channels

    @property
    def span(self) -> int:
        """Values in a row."""
        return self.size + self.apart * (self.together - 1)

    def rows(self, features: Tensor) -> Tensor:
        """Copy the windows of features (signal, sample, channel) into a matrix, `kernel / stride` times as large."""
        flat = features.reshape(self.signals, -1)  # (signal, sample * channel)
        matrix = flat.new_empty(self.signals * self.positions // self.together, self.span)
        for half, first in zip(self.halves(matrix), (0, self.stride * self.channels), strict=True):
            if half.numel():
                half.copy_(flat[:, first:].unfold(1, self.span, self.apart * self.together)[:, : half.shape[1]])
        return matrix  # (row, span)

    def halves(self, matrix: Tensor) -> tuple[Tensor, Tensor]:
        """View a matrix with these rows as those of even and those of odd positions, each (signal, row, …)."""
        cut = self.signals * self.even // self.together
        width = matrix.shape[1]
        return matrix[:cut].view(self.signals, -1, width), matrix[cut:].view(self.signals, -1, width)

    def pairs(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Split values (signal * position, width) into even positions that have a partner, and odd ones.

        Each is (signal, pair, width) and a view: writing to it changes the values.
        """
        cut, width = self.signals * self.even, values.shape[1]
        even = values[:cut].view(self.signals, self.even, width)[:, : self.odd]
        return even, values[cut:].view(self.signals, self.odd, width)

    def add_up(self, gradient: Tensor) -> Tensor:
        """Add up the gradient of the windows (row, span) to that of the features (signal, sample, channel)."""
        step = self.apart * self.together  # values from one row to the next
        flat = gradient.new_zeros(self.signals, self.samples * self.channels)
        for half, begin in zip(self.halves(gradient), (0, self.stride * self.channels), strict=True):
            for first in range(0, self.span if half.numel() else 0, step):
                part = half[:, :, first : first + step]  # rows do not overlap in it: one addition for all of them
                flat[:, begin + first :].unfold(1, part.shape[2], step)[:, : half.shape[1]].add_(part)
        return flat.view(self.signals, self.samples, self.channels)

    def spread(self, filters: Tensor) -> Tensor:
        """Arrange filters (size, width) as the matrix (span, together * width) that multiplies the rows."""
        if self.together == 1:
            return filters
        matrix = filters.new_zeros(self.span, self.together, filters.shape[1])
        for number in range(self.together):
            matrix[self.apart * number :][: self.size, number] = filters
        return matrix.flatten(1)

    def collect(self, gradient: Tensor) -> Tensor:
        """Sum the gradient of the filters' matrix (span, together * width) to that of the filters (size, width)."""
        if self.together == 1:
            return gradient
        parts = gradient.unflatten(1, (self.together, -1)).unbind(1)  # (span, width) each
        return torch.stack([part[self.apart * number :][: self.size] for number, part in enumerate(parts)]).sum(0)


def lay_windows(features: Tensor, kernel: int, stride: int) -> Windows:
    """Lay out the windows of features (signal, sample, channel), thin ones two in a row if their number allows it."""
    signals, samples, channels = features.shape
    plain = Windows(signals, samples, channels, kernel, stride)
    if plain.size >= _THIN or plain.even % 2 or plain.odd % 2:
        return plain
    return attrs.evolve(plain, together=2)
