"""The views of PCLR: Diamant et al., "Patient contrastive learning: a performant, expressive, and practical approach to
electrocardiogram modeling", PLOS Computational Biology 2022.

Recordings of the same patient are positive pairs. Heart and body stay between two visits; the pulse, the place of the
electrodes and the noise change. The plugin's card imports this file, so it imports no torch.
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
class VisitsOptions:
    """Options of the views `visits`."""

    visits: int = option(2, "Recordings of a patient in an instance.", check=(lambda n: n >= 2, "be 2 or more"))
    leads: Literal["each", "all"] = option("each", "Read each lead by itself, or all leads of a frame together.")


def visits_needs(options: VisitsOptions) -> Needs:
    """Ask for a frame of each of several recordings of a patient, of one channel or of all."""
    reads: Literal["one", "all"] = "one" if options.leads == "each" else "all"
    return Needs(recordings=options.visits, channels=options.leads, encoder_channels=reads)


def build_visits(options: VisitsOptions) -> Callable[[Batch, Generator], Views]:
    """Build the function that makes the frame of each recording a view."""
    return partial(visits_as_views, visits=options.visits)


def visits_as_views(batch: Batch, _generator: Generator, *, visits: int) -> Views:
    """Return the frame of each of a patient's recordings as a view, without random numbers or a copy.

    Raise ValueError if the instances have another number of frames.
    """
    shape = tuple(batch.signal.shape)
    if len(shape) != 4 or shape[1] != visits:
        raise ValueError(
            f"the views `visits` got a signal of shape {shape}, expected (batch, segment, channel, sample) "
            f"with one frame of each of {visits} recordings"
        )
    return Views(signal=batch.signal.transpose(0, 1), batch=batch)  # (view, batch, channel, sample)
