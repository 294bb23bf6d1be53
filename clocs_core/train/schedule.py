"""The learning rate of every step: a warm-up, then a constant or half a cosine."""

from __future__ import annotations

import math
from typing import Literal

import attrs
from torch import Tensor


@attrs.frozen
class Schedule:
    """The shape of the learning rate over a run.

    warm_up: steps over which it rises in a line to its full value; below 1, a share of all steps.
    shape: `cosine` lowers it from there to zero, in half a period until the last of all steps.
    """

    shape: Literal["constant", "cosine"] = "constant"
    warm_up: float = 0.0

    @property
    def is_constant(self) -> bool:
        """Whether every step has the full rate."""
        return self.shape == "constant" and self.warm_up == 0

    def share(self, done: Tensor, steps: int) -> Tensor:
        """Return the share of the full rate after `done` of `steps` steps, on their device. Waits for nothing.

        The first step of a warm-up over W has 1 / W. The first step after it has the full rate.
        """
        rising = float(round(self.warm_up * steps) if self.warm_up < 1 else self.warm_up)
        share = ((done + 1) / max(rising, 1.0)).clamp(max=1.0)
        if self.shape == "cosine":
            progress = ((done - rising) / max(steps - rising, 1.0)).clamp(0.0, 1.0)
            share = share * (1 + (progress * math.pi).cos()) / 2
        return share
