"""The views of contrastive multi-segment multi-lead coding (CMSMLC), section 4 of the CLOCS paper.

"Representations of non-overlapping temporal segments and different projections" are positive pairs: V segments of L
leads are V·L views. They are ordered by lead, then by segment: with leads a, b and two segments a1, a2, b1, b2. The
released code has the same order, and its "last pair" depends on it.

All pairs of views enter the loss, 28 of them for 2 x 4 views. The paper's own example is a pair that differs in
segment *and* lead; `pairs=cross` keeps only those, 12 of the 28.
The plugin's card imports this file, so it imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Batch, Needs, Views, option

if TYPE_CHECKING:
    from torch import Generator


@attrs.frozen
class SegmentsLeadsOptions:
    """Options of the views `segments-leads`."""

    segments: int = option(2, "Adjacent segments of a recording, V.", check=(lambda v: v >= 2, "be 2 or more"))
    pairs: Literal["all", "cross"] = option("all", "All pairs of views, or those that differ in segment and in lead.")


def segments_leads_needs(options: SegmentsLeadsOptions) -> Needs:
    """Ask for V adjacent frames of two or more leads."""
    return Needs(segments=options.segments, channels="all", least_channels=2)


def build_segments_leads(options: SegmentsLeadsOptions) -> Callable[[Batch, Generator], Views]:
    """Build the function that makes each segment of each lead a view."""
    return partial(segments_leads_as_views, segments=options.segments, cross=options.pairs == "cross")


def segments_leads_as_views(batch: Batch, _generator: Generator, *, segments: int, cross: bool) -> Views:
    """Return each segment of each lead of an instance as a view of one channel, without random numbers.

    Raise ValueError if the instances have another number of segments, or fewer than two leads.
    """
    shape = tuple(batch.signal.shape)
    if len(shape) != 4 or shape[1] != segments or shape[2] < 2:
        raise ValueError(
            f"the views `segments-leads` got a signal of shape {shape}, expected (batch, segment, channel, sample) "
            f"with {segments} segments and two channels or more"
        )
    signal = batch.signal.permute(2, 1, 0, 3).flatten(0, 1).unsqueeze(2)  # (lead * segment, batch, 1, sample)
    return Views(signal=signal, batch=batch, pairs=cross_pairs(shape[2], segments) if cross else ())


def cross_pairs(leads: int, segments: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs of views that differ in lead and in segment: L(L-1)/2 · V(V-1) of them."""
    places = [(lead, segment) for lead in range(leads) for segment in range(segments)]
    return tuple(
        (a, b)
        for a, b in combinations(range(len(places)), 2)
        if places[a][0] != places[b][0] and places[a][1] != places[b][1]
    )
