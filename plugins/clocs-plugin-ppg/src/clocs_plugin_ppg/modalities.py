"""Contrast of modalities: "attract representations of temporally-aligned ECG and PPG segments".

The CLOCS paper (ICML 2021) ends with this proposal, in its section on future work. Each named channel of a frame is a
view, as in CMLC, but the channels are of two modalities, and each modality has an encoder of its own. Pairs are made
across modalities only: what two leads of one ECG share is the business of CMLC.
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
        "how many of the named channels are of the first modality; the others are of the second",
        check=(lambda count: count >= 1, "be 1 or more"),
    )
    evaluated: Literal["first", "second"] = option(
        "first", "whose encoder is evaluated and opened again: that of the first modality or of the second"
    )


def modalities_needs(options: ModalitiesOptions) -> Needs:
    """What an instance is: one frame of channels of both modalities. A modality is evaluated on its own channels."""
    count = options.first_channels
    own = (0, count) if options.evaluated == "first" else (count, None)
    return Needs(channels="all", least_channels=count + 1, encoders=2, first_channels=own)


def build_modalities(options: ModalitiesOptions) -> Callable[[Batch, Generator], Views]:
    """The function that makes each channel a view of its modality's encoder."""
    return partial(modalities_as_views, first=options.first_channels, swap=options.evaluated == "second")


def modalities_as_views(batch: Batch, _generator: Generator, *, first: int, swap: bool) -> Views:
    """Each channel as a view; the `first` of them are read by encoder 0 and the others by encoder 1, or swapped.

    Encoder 0 is the one that the engine evaluates. Nothing is drawn and nothing is copied.
    Raises ValueError when the instances have more than one segment, or no channel of the second modality.
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
    summary="Contrast of modalities: ECG and PPG at one time, and patients, are shared; an encoder for each.",
    views="modalities",
    encoder="cnn",
    loss="patient-nce",
)
