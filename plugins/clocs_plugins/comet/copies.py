"""The views of COMET: perturbed copies of adjacent segments. The plugin's card imports this file, so no torch here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Batch, Needs, Views, option

if TYPE_CHECKING:
    from torch import Generator


@attrs.frozen
class SegmentCopiesOptions:
    """Options of the views `segment-copies`."""

    segments: int = option(2, "Adjacent segments of a recording, V.", check=(lambda v: v > 0, "be positive"))
    leads: Literal["each", "all"] = option("each", "Read each lead by itself, or all leads of a segment together.")


def segment_copies_needs(options: SegmentCopiesOptions) -> Needs:
    """Ask for V adjacent frames, and for a perturbation that draws random numbers."""
    reads: Literal["one", "all"] = "one" if options.leads == "each" else "all"
    return Needs(segments=options.segments, channels=options.leads, encoder_channels=reads, perturbations="random")


def build_segment_copies(options: SegmentCopiesOptions) -> Callable[[Batch, Generator], Views]:
    """Build the function that makes two views of each segment."""
    return partial(segment_copies, segments=options.segments)


def segment_copies(batch: Batch, _generator: Generator, *, segments: int) -> Views:
    """Return all segments of an instance, then all of them once more, in shared memory; core perturbs each view.

    Raise ValueError if the instances have another number of segments.
    """
    shape = tuple(batch.signal.shape)
    if len(shape) != 4 or shape[1] != segments:
        raise ValueError(
            f"the views `segment-copies` got a signal of shape {shape}, expected (batch, segment, channel, sample) "
            f"with {segments} segments"
        )
    signal = batch.signal.transpose(0, 1).expand(2, -1, -1, -1, -1)  # (copy, segment, batch, channel, sample)
    return Views(signal=signal.flatten(0, 1), batch=batch)  # (copy * segment, batch, channel, sample)
