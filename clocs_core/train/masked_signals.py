"""Draw stretches of positions of an encoder's sequence, and hide their samples: for objectives that predict them."""

from __future__ import annotations

from typing import Self

import attrs
import torch
from torch import Generator, Tensor

from clocs_core.contracts.ranks import Ranks
from clocs_core.contracts.setup import Setup


@attrs.frozen
class MaskedSignals:
    """Hides `count` stretches of `length` positions, of `stride` samples each. They may overlap."""

    count: int
    length: int
    stride: int

    @classmethod
    def fitting(cls, masked: float, stretch: int, setup: Setup) -> Self:
        """Return masks of a share of the positions at most. Raise ValueError where a frame has too few positions."""
        stride = int(setup.encoder.stride)  # type: ignore[arg-type]  # an integer by contract
        positions = -(-setup.signals.samples // stride)
        count = int(masked * positions) // stretch
        if count < 1 or count * stretch >= positions:
            raise ValueError(
                f"a frame of {setup.signals.samples} samples has {positions} position{'s' * (positions > 1)} of "
                f"{stride} samples, of which at most {masked:g} may be hidden, {stretch} in a row: that hides "
                f"{'none' if count < 1 else 'all'} of them. Change `masked` or `stretch`, or use longer frames"
            )
        return cls(count, stretch, stride)

    def draw(
        self, signal: Tensor, generator: Generator | None, ranks: Ranks | None = None, views: int = 1
    ) -> tuple[Tensor, Tensor]:
        """Return signals (n, channel, sample) with zeros in hidden positions, and which those are: (n, time).

        ranks: the processes that share a batch of `views` views, of which the signals are the own part. Each draws for
        the whole batch, so that a seed hides the same positions for every number of processes.
        """
        time = -(-signal.shape[-1] // self.stride)
        rows = len(signal) if ranks is None else views * ranks.whole
        # On the generator's device, which is that of the signal in training; no host sync.
        drawn = torch.rand(rows, self.count, generator=generator, device=signal.device)  # (n, stretch)
        if ranks is not None:
            drawn = drawn.unflatten(0, (views, ranks.whole))[:, ranks.own].flatten(0, 1)
        first = (drawn * (time - self.length + 1)).long()  # (n, stretch): the first position of each
        at = torch.arange(time, device=signal.device)
        inside = (at >= first[..., None]) & (at < first[..., None] + self.length)  # (n, stretch, time)
        hidden = inside.any(1)  # (n, time)
        samples = hidden.repeat_interleave(self.stride, 1, output_size=time * self.stride)[:, : signal.shape[-1]]
        return signal.masked_fill(samples[:, None], 0.0), hidden
