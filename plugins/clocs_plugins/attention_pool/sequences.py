"""Read the sequences of a frozen encoder: kept where they fit into memory, else computed for every batch.

The encoder does not change, so its sequences are the same in every epoch. 17,000 of them, of 250 positions and 512
features, take 8.7 GB.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from clocs_core import Trial

ON_CPU = 2**30
"""Bytes of sequences of one part that are kept on a CPU."""
SHARE = 0.25
"""Share of a GPU's free memory for the sequences of one part."""


def reader(trial: Trial, part: str, count: int, batch_size: int) -> Callable[[Tensor], Tensor]:
    """Return a function from rows of a part to their sequences (n, time, width).

    count: rows of the part.
    """
    first = compute(trial, part, torch.zeros(1, dtype=torch.int64))  # (1, time, width)
    if count * first.numel() * first.element_size() > room(trial.device):
        return partial(compute, trial, part)
    try:
        kept = first.new_empty(count, *first.shape[1:])
    except torch.OutOfMemoryError:  # another process took the memory meanwhile
        return partial(compute, trial, part)
    for rows in torch.arange(count).split(batch_size):
        kept[rows[0] : rows[-1] + 1] = compute(trial, part, rows)
    return lambda rows: kept[rows.to(kept.device)]


def room(device: torch.device) -> int:
    """Return how many bytes the sequences of one part may take."""
    return int(SHARE * torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else ON_CPU


def compute(trial: Trial, part: str, rows: Tensor) -> Tensor:
    """Return the sequences of rows, without gradients."""
    assert trial.signal is not None  # the offer wants the encoder
    with torch.no_grad():
        read = cast("Callable[[Tensor], Tensor]", trial.encoder.sequence)  # type: ignore[union-attr]
        return read(trial.signal(part, rows.numpy()))
