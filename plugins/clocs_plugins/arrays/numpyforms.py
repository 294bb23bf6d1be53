"""One .npy or .npz file that holds all recordings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import attrs
import numpy as np

from clocs_core import DataError
from clocs_plugins.arrays.layout import Found, axes_of, recordings_of
from clocs_plugins.arrays.numpyfiles import Header, Unreadable, headers, read_small
from clocs_plugins.arrays.tables import LABEL, PATIENT, as_texts

ALL_RECORDINGS = {1: ("sample",), 2: ("recording", "sample"), 3: ("recording", "channel", "sample")}
"""What the axes of an array of recordings are unless the user says otherwise, by how many there are."""

_SIGNALS = ("x", "X", "signals", "signal", "data", "samples")
_RATES = ("sampling_rate", "fs", "sfreq")
_CHANNELS = ("channels", "channel_names", "leads")
_UNITS = ("unit", "units")
_BESIDE = {*PATIENT, "ids", *LABEL, *_RATES, *_CHANNELS, *_UNITS}


@attrs.frozen
class Facts:
    """What holds for all recordings of a file."""

    signal: Header
    channels: tuple[str, ...] | None
    sampling_rate: float | None
    unit: str


def describe_array(path: Path, axes: tuple[str, ...]) -> Found:
    """What a file of recordings holds. Raises DataError in one sentence where it cannot be used."""
    try:
        facts, members = facts_of(path), headers(path)
        shape = facts.signal.shape
        names = axes_of(shape, axes, ALL_RECORDINGS, _name(path, facts.signal))
        count, channels = recordings_of(shape, names)
        return Found(
            form=f"{_name(path, facts.signal)}, {' x '.join(map(str, shape))} ({', '.join(names)})",
            records=tuple(f"{path.stem}[{number}]" for number in range(count)),
            files=(path,) * count,
            patients=_texts(path, members, (*PATIENT, "ids")),
            labels=_texts(path, members, LABEL),
            channels=facts.channels,
            channel_count=channels,
            sampling_rate=facts.sampling_rate,
            unit=facts.unit,
        )
    except Unreadable as problem:
        raise DataError(f"{problem}.") from None


def facts_of(path: Path) -> Facts:
    """What a load needs to know beside its recording, looked up once by each process."""
    found = path.stat()
    return _facts(path, (found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=4)
def _facts(path: Path, _stamp: tuple[int, int]) -> Facts:
    members = headers(path)
    channels = _texts(path, members, _CHANNELS)
    return Facts(_signal_of(members, path), channels, _rate(path, members), _unit(path, members))


def _signal_of(members: Mapping[str, Header], path: Path) -> Header:
    """The array that holds the signals: by its usual names, else the first that is no id, label or name."""
    named = [members[name] for name in ("", *_SIGNALS) if name in members]
    others = [one for name, one in members.items() if name not in _BESIDE and one.dtype.kind in "iuf" and one.shape]
    if not (named or others):
        held = ", ".join(members) or "nothing"
        raise Unreadable(f"{path.name} has no array of signals, it has {held}; call it x, as in np.savez(file, x=…)")
    header = (named or others)[0]
    if header.dtype.kind not in "iuf":
        raise Unreadable(f"{_name(path, header)} has values of type {header.dtype}, expected numbers")
    return header


def _name(path: Path, header: Header) -> str:
    return f"{header.name} of {path.name}" if header.name else path.name


def _find(members: Mapping[str, Header], names: tuple[str, ...]) -> Header | None:
    return next((members[name] for name in names if name in members), None)


def _texts(path: Path, members: Mapping[str, Header], names: tuple[str, ...]) -> tuple[str, ...] | None:
    header = _find(members, names)
    if header is None:
        return None
    values = read_small(path, header)
    return as_texts(values.reshape(1) if values.ndim == 0 else values, _name(path, header))


def _rate(path: Path, members: Mapping[str, Header]) -> float | None:
    header = _find(members, _RATES)
    if header is None:
        return None
    values = read_small(path, header) if header.dtype.kind in "iuf" else np.zeros(0)
    if values.size != 1 or not (np.isfinite(values).all() and values.min() > 0):
        raise Unreadable(f"{_name(path, header)} must be one positive number, in Hz")
    return float(values.reshape(-1)[0])


def _unit(path: Path, members: Mapping[str, Header]) -> str:
    found = _texts(path, members, _UNITS) or ("",)
    if len(set(found)) > 1:
        raise Unreadable(f"The channels of {path.name} have the units {', '.join(found)}, expected one for all")
    return found[0]
