"""One seed for a run, and from it a seed for every purpose: the same purpose always draws the same numbers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def derive(seed: int, *purpose: str | int) -> int:
    """A seed below 2**63 for a purpose, such as derive(0, "order", epoch). Independent of Python's own hash."""
    text = "\t".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator(device: torch.device, seed: int, *purpose: str | int) -> torch.Generator:
    """A torch generator on a device, seeded for a purpose."""
    import torch

    return torch.Generator(device).manual_seed(derive(seed, *purpose))
