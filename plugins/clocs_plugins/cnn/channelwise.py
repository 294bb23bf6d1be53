"""Channel-wise arithmetic on features whose last dimension is a short channel axis, at the speed of long vectors.

Four channels are too few for the vector units of a processor. So memory is viewed as rows of some 256 values, a
multiple of the number of channels, and coefficients are repeated to match. The values that do not fill a row form a
second, short part. Sums need none of this: torch's are as fast.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_WIDE = 256
"""Values in a row. Longer rows give shorter columns, whose sums lose fewer digits."""


def moments(features: Tensor, channels: int) -> tuple[Tensor, Tensor]:
    """Compute mean and biased variance (channel,) of each channel, as BatchNorm uses them."""
    count = features.numel() // channels
    parts = [(part.shape[0], *_column_moments(part, channels)) for part in _parts(features, channels)]
    mean = _add([rows * means.sum(0) for rows, means, _ in parts]) / count
    squares = [rows * (variances + (means - mean).square()).sum(0) for rows, means, variances in parts]
    return mean, _add(squares) / count


def scale_shift(features: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Compute scale * features + shift, with coefficients (channel,)."""
    made, channels = torch.empty_like(features), scale.numel()
    for part, target in zip(_parts(features, channels), _parts(made, channels), strict=True):
        torch.addcmul(_along(part, shift), part, _along(part, scale), out=target)
    return made


def scale_(features: Tensor, scale: Tensor) -> Tensor:
    """Multiply each channel by its coefficient (channel,), in place."""
    for part in _parts(features, scale.numel()):
        part.mul_(_along(part, scale))
    return features


def shift_(features: Tensor, shift: Tensor) -> Tensor:
    """Add to each channel its coefficient (channel,), in place."""
    for part in _parts(features, shift.numel()):
        part.add_(_along(part, shift))
    return features


def _parts(features: Tensor, channels: int) -> list[Tensor]:
    """View the memory as one or two matrices (row, times * channel): wide rows, then the rest."""
    width = channels * max(1, _WIDE // channels)
    left = features.numel() % width
    if not left:
        return [features.view(-1, width)]
    flat = features.view(-1)
    parts = (flat[:-left].view(-1, width), flat[-left:].view(-1, channels))
    return [part for part in parts if part.numel()]


def _along(part: Tensor, coefficient: Tensor) -> Tensor:
    """Repeat coefficients (channel,) to the width of a part's rows, (times * channel,)."""
    return coefficient.expand(part.shape[1] // coefficient.numel(), -1).reshape(-1)


def _column_moments(part: Tensor, channels: int) -> tuple[Tensor, Tensor]:
    """Compute means and variances of the columns of a part, each (times, channel)."""
    mean, variance = torch.batch_norm_update_stats(part, None, None, 0.0)
    return mean.view(-1, channels), variance.view(-1, channels)


def _add(tensors: Sequence[Tensor]) -> Tensor:
    return sum(tensors[1:], start=tensors[0])
