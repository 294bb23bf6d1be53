"""Derive a seed for each purpose from the one seed of a run, so that each purpose always draws the same numbers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def derive(seed: int, *purpose: str | int) -> int:
    """Derive a seed below 2**63 for a purpose: derive(0, "order", epoch). Does not depend on Python's `hash`."""
    text = "\t".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator(device: torch.device, seed: int, *purpose: str | int) -> torch.Generator:
    """Make a torch generator on a device, seeded for a purpose."""
    import torch

    return torch.Generator(device).manual_seed(derive(seed, *purpose))
