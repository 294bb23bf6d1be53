"""A signal that is handed over in Python: checked, and cut into the frames that a network reads."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from clocs_core.artifacts.card import NetworkCard
from clocs_core.data.recording import without_mask
from clocs_core.data.signal_file import SignalFile
from clocs_core.errors import ClocsWarning, DataError, SettingsError
from clocs_core.inference.signals import OwnFrames, Unsaid, cut_own_frames

_SIGNAL = "The signal"  # its name in error messages


def as_unsaid(
    card: NetworkCard,
    signal: ArrayLike | Tensor,
    sampling_rate: float,
    channels: Sequence[str] | str | None,
    unit: str,
    trained_at: float | None,
    unseen_channels: bool,
) -> Unsaid:
    """Collect the facts that the arguments give about a signal.

    Channels that are not named are the network's, where there are as many. Raises DataError where there are not.
    """
    rows = np.atleast_2d(as_array(signal)).shape[0]
    if channels is None:
        if rows != len(card.channels):
            raise DataError(
                f"{_SIGNAL} has {rows} channels and the {card.what} was trained on {len(card.channels)} "
                f"({', '.join(card.channels)}): name every row with `channels=[...]`."
            )
        channels = card.channels
    names = channels.split(",") if isinstance(channels, str) else channels
    return Unsaid(
        sampling_rate=_hertz("sampling_rate", sampling_rate),
        channels=tuple(name.strip() for name in names),
        unit=unit,
        trained_at=None if trained_at is None else _hertz("trained_at", trained_at),
        unseen_channels=unseen_channels,
    )


def cut_signal(card: NetworkCard, signal: ArrayLike | Tensor, unsaid: Unsaid) -> OwnFrames:
    """Cut a signal into frames as the network needs them. Oddities that are tolerated are raised as ClocsWarning."""
    return cut_own_frames(card, _as_recording(signal, unsaid.channels), _SIGNAL, unsaid, _warn)


def spread(card: NetworkCard, rows: OwnFrames, outputs: NDArray[Any]) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Outputs (n, k) as (frame, channel, k), NaN where a channel of a frame cannot be used; and the channels' names."""
    names = ("all",) if card.input_channels > 1 else rows.channels
    each = np.full((len(rows.starts), len(names), outputs.shape[1]), np.nan, dtype=outputs.dtype)
    each[rows.frame, rows.channel] = outputs
    return each, names


def as_array(values: ArrayLike | Tensor) -> NDArray[Any]:
    """Values as an array of real numbers. Raises DataError for anything else."""
    try:
        array = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else without_mask(values)
    except ValueError as problem:  # rows of unequal length
        raise DataError(f"The values are no array: {problem}") from None
    if array.dtype.kind not in "iuf":
        raise DataError(f"Values of type {array.dtype} are no signal, expected real numbers.")
    return array


def _as_recording(signal: ArrayLike | Tensor, names: tuple[str, ...]) -> SignalFile:
    """The samples; their names are the user's, as for a file that has none."""
    samples = as_array(signal).astype(np.float64)  # exact: frames are computed in it
    samples = samples[None] if samples.ndim == 1 else samples
    if samples.ndim != 2 or samples.size == 0:
        raise DataError(f"{_SIGNAL} has the shape {samples.shape}, expected (channel, sample) or (sample,).")
    if len(names) != len(samples):
        turned = "; its transpose would fit" if samples.shape[1] == len(names) else ""
        raise DataError(
            f"{_SIGNAL} (channel, sample) has the shape {samples.shape}, and channels are {len(names)}: "
            f"{', '.join(names) or 'none'}{turned}. Name every row, in order."
        )
    return SignalFile(samples)


def _hertz(name: str, value: object) -> float:
    if not isinstance(value, (int, float, np.integer, np.floating)) or not 0 < value < float("inf"):
        raise SettingsError(f"`{name}` must be a positive number of Hz, got {value!r}.")
    return float(value)  # whole numbers of NumPy overflow where they are multiplied


def _warn(text: str) -> None:
    warnings.warn(text, ClocsWarning, stacklevel=6)
