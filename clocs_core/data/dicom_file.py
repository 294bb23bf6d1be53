"""Read DICOM waveforms by pydicom: one group of channels, in physical units; padding is a missing sample."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from clocs_core.data.recording import Recording, Wish, choose, in_memory, need, one_unit, tidy_names
from clocs_core.data.regular_file import is_passing, open_regular
from clocs_core.errors import DataError

_LARGEST = 1 << 29  # bytes: a file is read as a whole; an hour of twelve leads at 1 kHz has 86 million
_DEFLATED = b"1.2.840.10008.1.2.1.99"  # a transfer syntax that unpacks to any size
# The standard calls leads "Lead I (Einthoven)", "Lead V1" and "aVR, augmented voltage, right".
_AROUND = re.compile(r"^\s*lead\s+|\s*\(einthoven\)\s*$|\s*,\s*augmented voltage.*$", re.IGNORECASE)


def is_dicom(path: Path) -> bool:
    """Return whether a file begins as DICOM files do, whatever its name."""
    with open_regular(path, 1 << 40) as stream:
        return stream.read(132)[128:] == b"DICM"


def open_dicom(path: Path, wish: Wish) -> Recording:
    """Read a recording. Raises DataError where it has no waveform, and Unavailable without pydicom."""
    library = need("pydicom", "dicom", "DICOM files")
    with open_regular(path, _LARGEST) as stream:
        if _DEFLATED in stream.read(1024):
            raise DataError(f"{path} is compressed as a whole, which is not read; save it uncompressed.")
        stream.seek(0)
        try:
            with warnings.catch_warnings(action="ignore"):  # of values that do not conform; they are checked here
                held = library.dcmread(stream)
                return _recording(path, held, wish)
        except DataError:
            raise
        except Exception as problem:  # the library decodes values when they are used, and raises anything
            if is_passing(problem):
                raise
            text = " ".join(str(problem).split()) or type(problem).__name__
            raise DataError(f"{path} cannot be read as a DICOM waveform: {text.rstrip('.')[:200]}.") from None


def _recording(path: Path, held: Any, wish: Wish) -> Recording:
    groups = list(held.get("WaveformSequence", ()))
    if not groups:
        raise DataError(f"{path} holds no waveform; it is {held.get('Modality', 'something else')}.")
    number, notes = _group(groups, wish, path)
    group = groups[number]
    channels = list(group.ChannelDefinitionSequence)
    values = _values(held, number, len(channels))
    units = [_unit(one) for one in channels]
    counted = [unit is None for unit in units]
    if any(counted) and not all(counted):
        raise DataError(f"{path} gives a unit for some of its channels only.")
    unit, factors = one_unit([unit or "" for unit in units])
    return in_memory(
        values * factors,
        channels=tidy_names([_name(one, place) for place, one in enumerate(channels)]),
        sampling_rate=float(group.SamplingFrequency),
        unit=unit,
        units=() if len(set(units)) == 1 or "," not in unit else tuple(str(one) for one in units),
        patient=str(held.get("PatientID", "") or "").strip(),
        notes=notes,
    )


def _group(groups: list[Any], wish: Wish, path: Path) -> tuple[int, tuple[str, ...]]:
    """Choose the group to read: with the wished rate, else a rhythm, else the longest."""
    labels = [str(one.get("MultiplexGroupLabel", "") or f"group {place}") for place, one in enumerate(groups)]
    rates = [float(one.SamplingFrequency) for one in groups]
    if min(rates) <= 0 or not all(map(np.isfinite, rates)):
        raise DataError(f"{path} has a sampling rate that is not positive.")
    places = list(range(len(groups)))
    if wish.sampling_rate and len(set(rates)) > 1:
        places, _ = choose(labels, rates, Wish(sampling_rate=wish.sampling_rate), str(path))
    rhythms = [place for place in places if "RHYTHM" in labels[place].upper()]
    seconds = {place: groups[place].NumberOfWaveformSamples / rates[place] for place in places}
    chosen = max(rhythms or places, key=lambda place: seconds[place])
    left = ", ".join(label for place, label in enumerate(labels) if place != chosen)
    return chosen, (f"Of {len(groups)} groups {labels[chosen]} is read, not {left}.",) if left else ()


def _values(held: Any, number: int, channels: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the samples (channel, sample) as the sensitivities of the channels scale them."""
    from pydicom.waveforms.numpy_handler import multiplex_array

    group = held.WaveformSequence[number]
    raw = multiplex_array(held, number, as_raw=True).T  # (channel, sample)
    if len(raw) != channels or not raw.size:
        raise DataError(f"the group describes {channels} channels and has samples of shape {raw.shape}")
    values = raw.astype(np.float64)
    padding = group.get("WaveformPaddingValue")
    if padding is not None:
        code = np.frombuffer(padding, raw.dtype, 1)[0] if isinstance(padding, bytes) else padding
        values[raw == code] = np.nan
    for row, one in zip(values, group.ChannelDefinitionSequence, strict=True):
        row *= float(one.get("ChannelSensitivity", 1.0)) * float(one.get("ChannelSensitivityCorrectionFactor", 1.0))
        row += float(one.get("ChannelBaseline", 0.0))
    return values


def _unit(channel: Any) -> str | None:
    """Return the unit of a channel, or None where it has no sensitivity: then the samples are counts."""
    if channel.get("ChannelSensitivity") is None:
        return None
    units = channel.get("ChannelSensitivityUnitsSequence")
    return str(units[0].CodeValue) if units else ""


def _name(channel: Any, place: int) -> str:
    source = channel.get("ChannelSourceSequence")
    said = (source[0].get("CodeMeaning") if source else None) or channel.get("ChannelLabel") or f"channel {place}"
    return _AROUND.sub("", str(said))
