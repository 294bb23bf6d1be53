"""What travels through a training step: a batch of instances, and the views made of it. All of it on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    from torch import Tensor


@attrs.frozen(eq=False)
class Batch:
    """A mini-batch of instances. Ids are device integers and form a hierarchy: patient > record > segment, channel."""

    signal: Tensor  # (batch, segment, channel, sample), in the data set's unit, not normalised
    patient: Tensor  # (batch,) int64: equal means the same patient
    record: Tensor  # (batch,) int64
    segment: Tensor  # (batch,) int64: position of the first segment in its recording, in frames
    channel: Tensor  # (batch,) int64: which of the chosen channels; 0 where an instance holds all of them
    label: Tensor | None = None  # (batch,) int64 with -1 for none, or (batch, class) float32 with NaN for none


@attrs.frozen(eq=False)
class Views:
    """The views of a batch. Equal positions along `batch` are views of the same instance.

    perturb: what the perturbations of a run are for: `every` view gets all of them, in their order; every view `but
    the first`, which stays clean; or `one each`: the one view that is here is followed by a view for each of them.
    """

    signal: Tensor  # (view, batch, channel, sample)
    batch: Batch
    target: Tensor | None = None  # (view, batch, ...): what an objective should predict of each view, if anything
    encoder_of_view: tuple[int, ...] = ()  # which encoder reads which view; empty: the first reads all
    pairs: tuple[tuple[int, int], ...] = ()  # which views a loss compares; empty: all pairs
    perturb: Literal["every", "but the first", "one each"] = "every"
