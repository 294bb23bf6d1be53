"""Cut recordings into frames that last as long as those that a network was trained on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from clocs_core.artifacts.card import NetworkCard
from clocs_core.contracts.records import Framing
from clocs_core.data.prepared import Prepared
from clocs_core.errors import DataError
from clocs_core.plan.compatibility import fit_framing
from clocs_core.plan.target import Target
from clocs_core.progress import Display

T = TypeVar("T")


def follows_rate(card: NetworkCard, framing: Framing) -> bool:
    """Tell whether frames last longer at a lower rate of the recordings, though the length in training is known."""
    return card.frame_rate is not None and framing.sampling_rate is None and framing.frames_per_record is None


def prepare_as_trained(
    card: NetworkCard,
    target: Target,
    prepare: Callable[[Framing], T],
    frames_of: Callable[[T], Prepared],
    show: Display,
) -> T:
    """Prepare recordings as a target says; once more, resampled, where their frames then have another time scale.

    Only the files say at which rate they were sampled. Two preparations are needed only where rates differ, and the
    second is found on disk the next time.
    """
    if not target.keeps_time:
        return prepare(target.framing)
    lasting = fit_framing(card, None, None)
    try:
        found = prepare(target.framing)
    except DataError:  # a recording at a lower rate may have too few samples for a frame before it is resampled
        if lasting == target.framing:
            raise
        found = prepare(lasting)
    else:
        if frames_of(found).frame_rate == card.frame_rate or lasting == target.framing:
            return found
        found = prepare(lasting)
    rates = ", ".join(f"{rate:g}" for rate in sorted(frames_of(found).sampling_rates))
    show.say(f"recordings at {rates} Hz are resampled, so that a frame lasts as long as in training")
    return found
