"""Resample a window in a layer of a network, as `cut_frames` does, with weights that can be exported.

Resampling a window of B samples to L is linear, so it is a matrix. By the Fourier method it is also circular: with
g = gcd(B, L), a signal rotated by B/g samples gives an output rotated by L/g. So L/g filters with stride B/g replace
the matrix: 20 kB for 5000 samples to 2500, where the matrix has 50 MB.
"""

from __future__ import annotations

from math import gcd

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from clocs_core.contracts.records import Framing, Record
from clocs_core.data.framing import cut_frames


def build_stretch(framing: Framing) -> nn.Module:
    """Build a layer from windows (n, channel, source_samples) to frames (n, channel, frame_samples) of `framing`."""
    window, length = framing.source_samples or framing.frame_samples, framing.frame_samples
    if window == length:
        return nn.Identity()
    if framing.resampler == "fft":
        return CircularStretch(window, length, _responses(framing, window, window // gcd(window, length)))
    return DenseStretch(_responses(framing, window, window))


class CircularStretch(nn.Module):
    """Resampling by the Fourier method. responses (window / g, length): to an impulse at each of the first samples."""

    filters: Tensor  # (length / g, 1, window)

    def __init__(self, window: int, length: int, responses: NDArray[np.float32]) -> None:
        super().__init__()
        turns = gcd(window, length)
        self.stride, self.length = window // turns, length
        outputs = length // turns
        row, turn = np.arange(outputs)[:, None], np.arange(turns)[None]
        # The response at r to an impulse at i + stride * t is the response at r - outputs * t to an impulse at i.
        filters = responses[:, (row - outputs * turn) % length]  # (stride, output, turn)
        whole = filters.transpose(1, 2, 0).reshape(outputs, 1, window)  # (output, 1, turn * stride)
        self.register_buffer("filters", torch.from_numpy(np.ascontiguousarray(whole)))

    def forward(self, signal: Tensor) -> Tensor:
        """Signals (n, channel, window) to (n, channel, length)."""
        level = signal[..., :1]  # resampling keeps a constant; subtracting it first saves digits of float32
        moved = signal - level
        around = torch.cat([moved, moved[..., : -self.stride]], dim=-1)  # (n, channel, 2 * window - stride)
        each = F.conv1d(around.flatten(0, 1).unsqueeze(1), self.filters, stride=self.stride)  # (n * channel, output, g)
        return each.transpose(1, 2).reshape(-1, signal.shape[1], self.length) + level


class DenseStretch(nn.Module):
    """Resampling by any linear method. responses (window, length): to an impulse at each sample."""

    matrix: Tensor  # (window, length)

    def __init__(self, responses: NDArray[np.float32]) -> None:
        super().__init__()
        self.register_buffer("matrix", torch.from_numpy(responses))

    def forward(self, signal: Tensor) -> Tensor:
        """Signals (n, channel, window) to (n, channel, length)."""
        return signal @ self.matrix


def _responses(framing: Framing, window: int, count: int) -> NDArray[np.float32]:
    """Compute the responses (count, length) to an impulse at each of the first `count` samples of a window."""
    impulses = Record("", "", tuple(map(str, range(count))), "", 1.0, np.eye(count, window))
    return np.asarray(cut_frames(impulses, framing).samples[0], dtype=np.float32)
