"""The views of random lead masking.

Oh, Chung, Kwon, Hong and Choi, "Lead-agnostic Self-supervised Learning for Local and Global Representations of
Electrocardiogram", CHIL 2022: each lead of a view is replaced by zeros with probability 0.5, so that an encoder of all
leads also works with fewer. Unlike in their code, a view never loses all of its leads: with 12 leads that would happen
to one view in 4096, with 2 leads to one in 4, and nothing can be learnt from such a view.

A masked lead is still zero after the normalisation of each lead. A perturbation that adds noise would make it noise of
full amplitude. The plugin's card imports this file, so it imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs

from clocs_core import Batch, Needs, Views, option

if TYPE_CHECKING:
    from torch import Generator, Tensor


@attrs.frozen
class MaskedLeadsOptions:
    """Options of the views `masked-leads`."""

    segments: int = option(2, "Adjacent segments of a recording, V.", check=(lambda v: v >= 2, "be 2 or more"))
    probability: float = option(
        0.5,
        "Probability that a lead is masked; 1 leaves one lead in each view.",
        check=(lambda p: 0 <= p <= 1, "be between 0 and 1"),
    )


def masked_leads_needs(options: MaskedLeadsOptions) -> Needs:
    """Ask for V adjacent frames of all chosen leads; the encoder reads all leads."""
    return Needs(segments=options.segments, channels="all", encoder_channels="all", least_channels=2)


def build_masked_leads(options: MaskedLeadsOptions) -> Callable[[Batch, Generator], Views]:
    """Build the function that makes each segment a view and masks leads in it."""
    return partial(masked_leads, segments=options.segments, probability=options.probability)


def masked_leads(batch: Batch, generator: Generator, *, segments: int, probability: float) -> Views:
    """Return each of an instance's `segments` as a view in which each lead is zero with `probability`.

    Raise ValueError if the instances have another number of segments.
    """
    shape = tuple(batch.signal.shape)
    if len(shape) != 4 or shape[1] != segments:
        raise ValueError(
            f"the views `masked-leads` got a signal of shape {shape}, expected (batch, segment, channel, sample) "
            f"with {segments} segments"
        )
    signal = batch.signal.transpose(0, 1)  # (view, batch, channel, sample)
    silent = ~survivors(signal, generator, probability)  # (view, batch, channel)
    return Views(signal=signal.masked_fill(silent[..., None], 0.0), batch=batch)  # one copy of the batch


def survivors(signal: Tensor, generator: Generator, probability: float) -> Tensor:
    """Draw which leads of signals (..., channel, sample) are kept, as booleans (..., channel).

    Each lead draws a number and is kept if it is not below `probability`, independently of the others. The lead with
    the highest number is always kept; if all are below, that is any lead with equal probability.
    """
    import torch

    # Always float32, so that a seed masks the same leads for every dtype of the signal.
    drawn = torch.rand(signal.shape[:-1], generator=generator, device=signal.device, dtype=torch.float32)
    return (drawn >= probability) | (drawn == drawn.amax(-1, keepdim=True))
