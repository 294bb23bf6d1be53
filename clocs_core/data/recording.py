"""A recording in a file, opened: what its header says, and a function that reads a stretch of it.

Every format of recordings returns this record, so that long recordings are read by window and no reader of signals
needs to know a format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from clocs_core.contracts.units import MICROVOLTS
from clocs_core.errors import DataError, Unavailable

Samples = NDArray[np.floating | np.integer]

_VOLTS = {"microvolt": "uV", "millivolt": "mV", "volt": "V", "uv": "uV", "mv": "mV", "v": "V", "µv": "uV", "μv": "uV"}


def without_mask(values: ArrayLike | Sequence[ArrayLike]) -> NDArray[Any]:
    """Values as an array, NaN where they are masked: masked samples are missing ones."""
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "iuf":
        return np.where(np.ma.getmaskarray(values), np.nan, values.data)
    return np.asarray(values)


@attrs.frozen
class Wish:
    """A choice among the channels of a file. Names that the file lacks, and a rate of 0 Hz, choose nothing."""

    channels: tuple[str, ...] = ()
    sampling_rate: float = 0.0


ANYTHING = Wish()
"""Asks for nothing in particular."""


@attrs.frozen(eq=False)
class Stretch:
    """A part of a recording, (channel, sample), and remarks for the user on what was found in it."""

    samples: Samples
    notes: tuple[str, ...] = ()


@attrs.frozen(eq=False, kw_only=True)
class Recording:
    """One recording, not read yet. None, or an empty text: the file does not say it.

    read(start, stop) returns the samples from `start` up to `stop`; divided by `gain`, they are in `unit`.
    notes: remarks for the user on how the file is read.
    files: other files that samples are read from, such as the signals beside a header.
    """

    length: int  # samples per channel
    read: Callable[[int, int], Stretch]
    channels: tuple[str, ...] | None = None
    sampling_rate: float | None = None  # Hz
    unit: str = ""
    units: tuple[str, ...] = ()  # of each channel, where they differ
    gain: float = 1.0
    patient: str = ""
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    def only(self, names: Sequence[str]) -> Recording:
        """Return the recording with these channels alone, or as it is where it lacks one or nothing is named."""
        if not names or self.channels is None or not set(names) < set(self.channels):
            return self
        places = [place for place, name in enumerate(self.channels) if name in names]
        units = tuple(self.units[place] for place in places) if self.units else ()

        def read(start: int, stop: int) -> Stretch:
            found = self.read(start, stop)
            return Stretch(found.samples[places], found.notes)

        return attrs.evolve(
            self,
            read=read,
            channels=tuple(self.channels[place] for place in places),
            unit=", ".join(dict.fromkeys(units)) or self.unit,
            units=units,
        )


def need(module: str, extra: str, what: str) -> Any:
    """Import the library that reads a format. Raises Unavailable with the command that installs it."""
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise Unavailable(f"Reading {what} needs {name}: install it with `pip install 'clocs[{extra}]'`.") from None


def choose(names: Sequence[str], rates: Sequence[float], wish: Wish, where: str) -> tuple[list[int], tuple[str, ...]]:
    """Choose channels that have one sampling rate; return their places, and a note on the others.

    Channels that are wished for are chosen before a rate; without a wish for a rate, the rate of most channels counts.
    """
    wished = [place for place, name in enumerate(names) if name in wish.channels]
    places = wished if len(wished) == len(wish.channels) and wished else list(range(len(names)))
    counts = Counter(rates[place] for place in places)
    if len(counts) == 1:
        return places, ()
    rate = wish.sampling_rate or max(counts, key=lambda one: (counts[one], one))
    if rate not in counts:
        said = ", ".join(f"{one:g}" for one in sorted(counts))
        raise DataError(f"{where} has channels at {said} Hz, and none at `sampling_rate={rate:g}`.")
    left = ", ".join(f"{names[place]} ({rates[place]:g} Hz)" for place in places if rates[place] != rate)
    return [place for place in places if rates[place] == rate], (f"Only channels at {rate:g} Hz are read, not {left}.",)


def tidy_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of channels without commas, numbered where one is empty or comes twice."""
    made: list[str] = []
    for place, name in enumerate(names):
        plain = " ".join(name.replace(",", " ").replace("\0", " ").split()) or f"channel {place}"
        taken = sum(one == plain or one.startswith(f"{plain} #") for one in made)
        made.append(f"{plain} #{taken + 1}" if taken else plain)
    return tuple(made)


def one_unit(units: Sequence[str]) -> tuple[str, NDArray[np.float64]]:
    """Return one unit for all channels, and the factor (channel, 1) by which each is multiplied to be in it.

    Voltages become the unit of the first. Where others differ, all units are named, with commas, and nothing changes.
    """
    plain = [_VOLTS.get(unit.strip().casefold().removesuffix("s"), unit.strip()) for unit in units]
    if set(plain) <= MICROVOLTS.keys():
        factors = [MICROVOLTS[unit] / MICROVOLTS[plain[0]] for unit in plain]
        return plain[0], np.array(factors)[:, None]
    return ", ".join(dict.fromkeys(plain)), np.ones((len(plain), 1))


def in_memory(samples: Samples, found: tuple[str, ...] = (), **facts: Any) -> Recording:
    """Return the record of a recording that had to be read as a whole. found: remarks on its samples."""
    return Recording(length=samples.shape[1], read=lambda start, stop: Stretch(samples[:, start:stop], found), **facts)
