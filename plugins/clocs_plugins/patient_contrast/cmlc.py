"""The views of contrastive multi-lead coding (CMLC), section 4 of the CLOCS paper.

"We exploit spatial invariances in the ECG by defining representations of these different temporally-aligned
projections as positive pairs": each chosen lead of a frame is a view, in the order in which the user names the leads.
The plugin's card imports this file, so it imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clocs_core import Batch, Needs, NoOptions, Views

if TYPE_CHECKING:
    from torch import Generator


def leads_needs(_options: NoOptions) -> Needs:
    """Ask for one frame of two or more leads."""
    return Needs(channels="all", least_channels=2)


def build_leads(_options: NoOptions) -> Callable[[Batch, Generator], Views]:
    """Build the function that makes each lead a view."""
    return leads_as_views


def leads_as_views(batch: Batch, _generator: Generator) -> Views:
    """Return each lead of an instance as a view of one channel, without random numbers or a copy.

    Raise ValueError if the instances have more than one segment, or fewer than two leads.
    """
    shape = tuple(batch.signal.shape)
    if len(shape) != 4 or shape[1] != 1 or shape[2] < 2:
        raise ValueError(
            f"the views `leads` got a signal of shape {shape}, expected (batch, segment, channel, sample) with one "
            "segment and two channels or more"
        )
    return Views(signal=batch.signal.permute(2, 0, 1, 3), batch=batch)  # (view, batch, 1, sample)
