"""The views of MT-SSL: the frame itself; core adds one for each perturbation of the run.

The plugin's card imports this file, so it imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clocs_core import Batch, Needs, NoOptions, Views

if TYPE_CHECKING:
    from torch import Generator


def original_needs(_options: NoOptions) -> Needs:
    """Ask for one channel of one frame, and for at least one perturbation to tell it from."""
    return Needs(segments=1, channels="each", perturbations="some")


def build_original(_options: NoOptions) -> Callable[[Batch, Generator], Views]:
    """Build the function that makes the frame a view."""
    return original_as_view


def original_as_view(batch: Batch, _generator: Generator) -> Views:
    """Return the frame as the only view, without random numbers or a copy; core adds the perturbed ones.

    Raise ValueError if the instances have more than one segment.
    """
    shape = tuple(batch.signal.shape)
    if len(shape) != 4 or shape[1] != 1:
        raise ValueError(
            f"the views `original` got a signal of shape {shape}, expected (batch, segment, channel, sample) "
            "with 1 segment"
        )
    signal = batch.signal.transpose(0, 1)  # (view, batch, channel, sample)
    return Views(signal=signal, batch=batch, perturb="one each")
