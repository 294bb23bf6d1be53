"""Contrast of modalities: "attract representations of temporally-aligned ECG and PPG segments".

The CLOCS paper (ICML 2021) proposes this in its section on future work. Each named channel of a frame is a view, as in
CMLC, but the channels belong to two modalities, and each modality has its own encoder. Pairs are across modalities
only: CMLC contrasts the leads of one ECG.
The plugin's card imports this file, so it imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Literal

import attrs
from clocs_core import Batch, Method, Needs, ViewGenerator, Views, option

if TYPE_CHECKING:
    from torch import Generator


@attrs.frozen
class ModalitiesOptions:
    """Options of the views `modalities`."""

    first_channels: int = option(
        1,
        "Number of named channels of the first modality; the others are of the second.",
        check=(lambda count: count >= 1, "be 1 or more"),
    )
    evaluated: Literal["first", "second"] = option(
        "first", "Modality whose encoder is evaluated and reloaded: the first or the second."
    )


def modalities_needs(options: ModalitiesOptions) -> Needs:
    """Ask for one frame of channels of both modalities. A modality is evaluated on its own channels."""
    count = options.first_channels
    own = (0, count) if options.evaluated == "first" else (count, None)
    return Needs(channels="all", least_channels=count + 1, encoders=2, first_channels=own)


def build_modalities(options: ModalitiesOptions) -> Callable[[Batch, Generator], Views]:
    """Build the function that makes each channel a view of its modality's encoder."""
    return partial(modalities_as_views, first=options.first_channels, swap=options.evaluated == "second")


def modalities_as_views(batch: Batch, _generator: Generator, *, first: int, swap: bool) -> Views:
    """Return each channel as a view; encoder 0 reads the `first` channels and encoder 1 the others, or swapped.

    The engine evaluates encoder 0. There are no random numbers and no copy.
    Raise ValueError if the instances have more than one segment, or no channel of the second modality.
    """
    shape = tuple(batch.signal.shape)
    if len(shape) != 4 or shape[1] != 1 or shape[2] <= first:
        raise ValueError(
            f"the views `modalities` got a signal of shape {shape}, expected (batch, segment, channel, sample) with "
            f"one segment and more than {first} channels"
        )
    second = shape[2] - first
    return Views(
        signal=batch.signal.permute(2, 0, 1, 3),  # (view, batch, 1, sample)
        batch=batch,
        encoder_of_view=(int(swap),) * first + (int(not swap),) * second,
        pairs=tuple(product(range(first), range(first, shape[2]))),
    )


MODALITIES = ViewGenerator(
    name="modalities",
    summary="The channels of one frame, at the same time, each read by the encoder of its modality.",
    options=ModalitiesOptions,
    needs=modalities_needs,
    build=build_modalities,
)

CROSS_MODAL = Method(
    name="cross-modal",
    summary="Contrast of modalities: ECG and PPG of one time, or of one patient, attract; an encoder for each.",
    views="modalities",
    encoder="cnn",
    loss="patient-nce",
)
