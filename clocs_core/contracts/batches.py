"""The tensors of a training step, all on one device: a batch of instances and its views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

import attrs

if TYPE_CHECKING:
    from torch import Tensor


@attrs.frozen(eq=False)
class Batch:
    """A mini-batch of instances. Ids are device integers and form a hierarchy: patient > record > segment, channel.

    Where a method needs several recordings in an instance, the segments of the first come first, then those of the
    second; `record`, `segment` and the label are those of the first.
    about: the columns that the method needs, by name: (batch,) float32, standardised on the recordings of training
    patients, NaN where missing; of a category (batch,) int64, -1 where missing.
    """

    signal: Tensor  # (batch, segment, channel, sample), in the data set's unit, not normalised
    patient: Tensor  # (batch,) int64: equal means the same patient
    record: Tensor  # (batch,) int64
    segment: Tensor  # (batch,) int64: position of the first segment in its recording, in frames
    channel: Tensor  # (batch,) int64: index among the chosen channels; 0 where an instance holds all of them
    # (batch,) int64 with -1 for none; (batch, class) float32 with NaN for none; of a number (batch,) float32 with NaN
    label: Tensor | None = None
    about: Mapping[str, Tensor] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class Views:
    """The views of a batch. Equal positions along `batch` are views of the same instance.

    perturb: which views are perturbed. `every`: each view gets all perturbations, in order. `but the first`: the
    first view stays clean. `one each`: `signal` holds one view; each perturbation adds another view made from it.
    """

    signal: Tensor  # (view, batch, channel, sample)
    batch: Batch
    target: Tensor | None = None  # (view, batch, ...): the values that an objective predicts from each view
    encoder_of_view: tuple[int, ...] = ()  # index of the encoder that reads each view; empty: the first reads all
    pairs: tuple[tuple[int, int], ...] = ()  # pairs of views that a loss compares; empty: all pairs
    perturb: Literal["every", "but the first", "one each"] = "every"


class Encode(Protocol):
    """The encoders of a run, as an objective gets them. Each encoder is called once, on all of its views."""

    def __call__(self, signal: Tensor) -> Tensor:
        """Embed views (view, batch, channel, sample) as (view, batch, embedding_dim)."""

    def sequence(self, signal: Tensor) -> Tensor:
        """Encode views (view, batch, channel, sample) as (view, batch, time, width), for signals of any length.

        An objective that calls it declares `Objective(sequence=True)`.
        """

    def both(self, signal: Tensor) -> tuple[Tensor, Tensor]:
        """Return embeddings and sequences of views, in one pass if the encoders have `of_sequence`."""
