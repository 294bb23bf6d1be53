"""Encoders that read a part of their input: some of its channels, or a coarser signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from torch import Tensor, nn


class Reading(nn.Module):
    """An encoder that reads a part of a signal: channels from `first` to before `end`, means of adjacent samples.

    average: samples in a mean; the last mean may be of fewer. The sequence of the encoder, if any, is of the same part.
    """

    def __init__(self, encoder: nn.Module, first: int, end: int | None, average: int) -> None:
        super().__init__()
        self.encoder, self.first, self.end, self.average = encoder, first, end, average
        if hasattr(encoder, "sequence"):
            self.stride, self.width = cast("int", encoder.stride) * average, encoder.width
            self.causal = getattr(encoder, "causal", False)

    def forward(self, signal: Tensor) -> Tensor:
        """Embed the encoder's part of signals (n, channel, sample)."""
        z: Tensor = self.encoder(self._part_of(signal))  # (n, dim)
        return z

    def sequence(self, signal: Tensor) -> Tensor:
        """Return the sequence (n, time, width) of the encoder's part of signals (n, channel, sample)."""
        return cast("Callable[[Tensor], Tensor]", self.encoder.sequence)(self._part_of(signal))

    def _part_of(self, signal: Tensor) -> Tensor:
        own = signal[:, self.first : self.end]  # (n, own channel, sample)
        if self.average == 1:
            return own
        return nn.functional.avg_pool1d(own, self.average, ceil_mode=True)  # (n, own channel, sample / average)


def weights_of_reader(weights: Mapping[str, Tensor], number: int, average: int) -> dict[str, Tensor]:
    """Return the weights of one reader, with the names of the network that `build_coarser` builds.

    weights: those of all readers of a run, each behind its number.
    """
    prefix = f"{number}." if average > 1 else f"{number}.encoder."
    return {name.removeprefix(prefix): one for name, one in weights.items() if name.startswith(prefix)}


def build_coarser(build: Callable[[int], nn.Module], samples: int, average: int) -> nn.Module:
    """Build an encoder for frames of `samples` that reads means of `average` adjacent ones.

    build(samples) builds the encoder itself.
    """
    return build(samples) if average == 1 else Reading(build(-(-samples // average)), 0, None, average)
