"""An encoder with its options and signals for it, which the rules for encoders and for sequences are tried on."""

from __future__ import annotations

import unittest
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from clocs_core.contracts.offers import Encoder
from clocs_core.testing.pace import Clock
from clocs_core.testing.synthetic import synthetic_batch

ROWS = 4
SAMPLES = 1000


@attrs.frozen
class EncoderCase:
    """An encoder with its options, and signals for it."""

    offer: Encoder
    options: Any
    clock: Clock

    def build(self, channels: int = 1, samples: int = SAMPLES, dim: int = 16, seed: int = 0) -> nn.Module:
        """Build the encoder with weights drawn from a seed."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return self.offer.build(self.options, channels, samples, dim)

    def signal(self, channels: int = 1, samples: int = SAMPLES) -> Tensor:
        """Return synthetic signals."""
        return synthetic_batch(ROWS, 1, channels, samples).signal[:, 0]  # (n, channel, sample)


def skip_unless(holds: bool, rule: str) -> None:
    """Skip this rule if it has nothing to compare because another rule, which reports it, is broken."""
    if not holds:
        raise unittest.SkipTest(f"the rule `{rule}` is broken")
