"""Read EDF, EDF+, BDF and BDF+ recordings by edfio, in physical units; channels of annotations are left out.

A few records at a time are given to edfio, with a header that counts these alone. By itself, edfio maps an EDF file
into the memory, which ends the process if the file is cut meanwhile, and reads all of a BDF file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from clocs_core.data.edf_records import Records, find_records, read_records, refuse_gaps
from clocs_core.data.recording import Recording, Stretch, Wish, choose, need, one_unit, tidy_names
from clocs_core.data.regular_file import is_passing, open_regular
from clocs_core.errors import DataError

_LARGEST = 1 << 38  # bytes; only the window that is asked for is read
_PIECE = 1 << 24  # bytes of records that are decoded at once
_UNKNOWN = {"", "X", "x"}  # EDF+ writes X where it does not say who it is


def open_edf(path: Path, wish: Wish) -> Recording:
    """Open a recording. Raises DataError where it is damaged, and Unavailable without edfio."""
    library = need("edfio", "edf", "EDF and BDF files")
    with open_regular(path, _LARGEST) as stream, _problems_of(path):
        records = find_records(path, stream)
        refuse_gaps(path, stream, records)
        held = _decode(library, records, read_records(path, stream, records, 0, 1))
        usable = [place for place, signal in enumerate(held) if _has_range(signal)]
        signals = [held[place] for place in usable]
        empty = [signal.label for place, signal in enumerate(held) if place not in usable]
        if not signals:
            raise DataError(f"{path} holds no signal.")
        names = tidy_names([signal.label for signal in signals])
        rates = [float(signal.sampling_frequency) for signal in signals]
        chosen, notes = choose(names, rates, wish, str(path))
        unit, factors = one_unit([signals[place].physical_dimension for place in chosen])
        each = signals[chosen[0]].samples_per_data_record
    places, length = [usable[place] for place in chosen], records.count * each
    if empty:
        notes += (f"Channels whose header gives no range of values are left out: {', '.join(tidy_names(empty))}.",)

    def read(start: int, stop: int) -> Stretch:
        if stop > length:
            raise DataError(f"{path} ends before sample {stop:,}.")
        rows = np.empty((len(places), stop - start))
        step, end = max(1, _PIECE // records.size), -(-stop // each)  # in records
        with open_regular(path, _LARGEST) as stream, _problems_of(path):
            for first in range(start // each, end, step):
                piece = _decode(library, records, read_records(path, stream, records, first, min(first + step, end)))
                values = np.stack([piece[place].data for place in places])  # (channel, sample)
                skipped = max(0, start - first * each)  # of the first record
                begin = first * each + skipped - start
                kept = values[:, skipped : stop - first * each]
                rows[:, begin : begin + kept.shape[1]] = kept
        rows *= factors
        return Stretch(rows)

    return Recording(
        length=length,
        read=read,
        channels=tuple(names[place] for place in chosen),
        sampling_rate=rates[chosen[0]],
        unit=unit,
        patient=_patient(records),
        notes=(*records.notes, *notes),
    )


@contextmanager
def _problems_of(path: Path) -> Iterator[None]:
    """Raise DataError for what the library says of a file."""
    try:
        yield
    except DataError:
        raise
    except (OSError, ValueError, IndexError, UnicodeError, ArithmeticError, MemoryError) as problem:
        if is_passing(problem):
            raise
        text = " ".join(str(problem).split()).rstrip(".")
        raise DataError(f"{path} cannot be read as EDF: {text}.") from None


def _decode(library: Any, records: Records, raw: bytes) -> Any:
    """Return the channels that edfio finds in these records, without annotations."""
    count = b"%-8d" % (len(raw) // records.size)
    read = library.read_bdf if records.bytes_each == 3 else library.read_edf
    return read(records.header[:236] + count + records.header[244:] + raw, header_encoding=records.encoding).signals


def _has_range(signal: Any) -> bool:
    """Return whether the header says which values the samples of a channel stand for. CHB-MIT has channels without."""
    try:
        digital, physical = signal.digital_range, signal.physical_range
    except ValueError:
        return False
    if not signal.samples_per_data_record or digital.min >= digital.max:
        return False
    gain = (physical.max - physical.min) / (digital.max - digital.min)
    return gain != 0 and math.isfinite(gain)


def _patient(records: Records) -> str:
    """Return the code of the patient, which only EDF+ and BDF+ have."""
    code = records.field(8, 88).partition(" ")[0].replace("_", " ") if records.is_plus else ""
    return "" if code in _UNKNOWN else code
