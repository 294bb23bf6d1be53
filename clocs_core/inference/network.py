"""Run a network on input that is converted into its unit and normalised as in training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from clocs_core.train.normalise import Normalise

_AT_ONCE = 1024  # frames per forward pass: about 40 MB of activations with the paper's encoder


class AsTrained(nn.Module):
    """A network that converts its input into its unit, then normalises it as in training."""

    def __init__(self, network: nn.Module, normalise: Normalise, factor: float = 1.0) -> None:
        super().__init__()
        self.network, self.normalise, self.factor = network, normalise, factor
        self.eval()

    def forward(self, signal: Tensor) -> Tensor:
        """Map signals (n, channel, sample) in their recording's unit to logits (n, class) or embeddings (n, dim)."""
        scaled = signal if self.factor == 1.0 else signal * self.factor
        found: Tensor = self.network(self.normalise(scaled))
        return found


def outputs_of(
    network: nn.Module,
    signal: NDArray[np.floating],
    device: torch.device,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> NDArray[np.float32]:
    """Run a network over signals (n, channel, sample) in batches; return outputs (n, …). Calls tick(done, n)."""
    parts = []
    with torch.inference_mode():
        for first in range(0, len(signal), _AT_ONCE):
            batch = torch.from_numpy(signal[first : first + _AT_ONCE]).to(device)
            parts.append(network(batch).float().cpu().numpy())  # sync point
            tick(min(first + _AT_ONCE, len(signal)), len(signal))
    return np.concatenate(parts)
