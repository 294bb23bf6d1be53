"""The views of supervised pre-training: unchanged frames. The plugin's card imports this file, so no torch here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Batch, Needs, Views, option

if TYPE_CHECKING:
    from torch import Generator


@attrs.frozen
class FramesOptions:
    """Options of the views `frames`."""

    leads: Literal["each", "all"] = option("each", "Read each lead by itself, or all leads of a frame together.")


def frames_needs(options: FramesOptions) -> Needs:
    """Ask for one frame, of one channel or of all."""
    return Needs(segments=1, channels=options.leads, encoder_channels="one" if options.leads == "each" else "all")


def build_frames(_options: FramesOptions) -> Callable[[Batch, Generator], Views]:
    """Build the function that makes the frame a view."""
    return frames_as_views


def frames_as_views(batch: Batch, _generator: Generator) -> Views:
    """Return the frame as the only view, without random numbers or a copy.

    Raise ValueError if the instances have more than one segment.
    """
    shape = tuple(batch.signal.shape)
    if len(shape) != 4 or shape[1] != 1:
        raise ValueError(
            f"the views `frames` got a signal of shape {shape}, expected (batch, segment, channel, sample) "
            "with 1 segment"
        )
    return Views(signal=batch.signal.transpose(0, 1), batch=batch)  # (view, batch, channel, sample)
