"""The views of MT-SSL: the frame itself, and then, made by core, one for each perturbation of the run.

The plugin's card imports this file, so it imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clocs_core import Batch, Needs, NoOptions, Views

if TYPE_CHECKING:
    from torch import Generator


def original_needs(_options: NoOptions) -> Needs:
    """What an instance is: one channel of one frame; and there must be something to tell it from."""
    return Needs(segments=1, channels="each", perturbations="some")


def build_original(_options: NoOptions) -> Callable[[Batch, Generator], Views]:
    """The function that makes the frame a view."""
    return original_as_view


def original_as_view(batch: Batch, _generator: Generator) -> Views:
    """The frame as the only view, to be followed by its perturbed ones; nothing is drawn and nothing is copied.

    Raises ValueError when the instances have more than one segment.
    """
    shape = tuple(batch.signal.shape)
    if len(shape) != 4 or shape[1] != 1:
        raise ValueError(
            f"the views `original` got a signal of shape {shape}, expected (batch, segment, channel, sample) "
            "with 1 segment"
        )
    signal = batch.signal.transpose(0, 1)  # (view, batch, channel, sample)
    return Views(signal=signal, batch=batch, perturb="one each")
