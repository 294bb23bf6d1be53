"""The views of contrastive multi-segment coding (CMSC), section 4 of the CLOCS paper.

"We can extract V non-overlapping temporal segments"; representations of "adjacent and non-overlapping temporal
segments" are positive pairs. The segments are the adjacent frames of an instance, in order.
The plugin's card imports this file, so it imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Batch, Needs, Views, option

if TYPE_CHECKING:
    from torch import Generator


@attrs.frozen
class SegmentsOptions:
    """Options of the views `segments`."""

    segments: int = option(2, "Adjacent segments of a recording, V.", check=(lambda v: v >= 2, "be 2 or more"))
    leads: Literal["each", "all"] = option("each", "Read each lead by itself, or all leads of a segment together.")


def segments_needs(options: SegmentsOptions) -> Needs:
    """Ask for V adjacent frames, of one channel or of all."""
    reads: Literal["one", "all"] = "one" if options.leads == "each" else "all"
    return Needs(segments=options.segments, channels=options.leads, encoder_channels=reads)


def build_segments(options: SegmentsOptions) -> Callable[[Batch, Generator], Views]:
    """Build the function that makes each segment a view."""
    return partial(segments_as_views, segments=options.segments)


def segments_as_views(batch: Batch, _generator: Generator, *, segments: int) -> Views:
    """Return each of an instance's `segments` as a view, without random numbers or a copy.

    Raise ValueError if the instances have another number of segments.
    """
    shape = tuple(batch.signal.shape)
    if len(shape) != 4 or shape[1] != segments:
        raise ValueError(
            f"the views `segments` got a signal of shape {shape}, expected (batch, segment, channel, sample) "
            f"with {segments} segments"
        )
    return Views(signal=batch.signal.transpose(0, 1), batch=batch)  # (view, batch, channel, sample)
