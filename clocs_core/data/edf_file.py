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
from numpy.typing import NDArray

from clocs_core.data.edf_records import PIECE, Records, begins_of_records, find_records, read_records
from clocs_core.data.recording import Recording, Stretch, Wish, choose, need, one_unit, tidy_names
from clocs_core.data.regular_file import is_passing, open_regular
from clocs_core.errors import DataError

_LARGEST = 1 << 38  # bytes; only the window that is asked for is read
_LONGEST = 10  # times as long as what was recorded, with its gaps
_UNKNOWN = {"", "X", "x"}  # EDF+ writes X where it does not say who it is


def open_edf(path: Path, wish: Wish) -> Recording:
    """Open a recording. Raises DataError where it is damaged, and Unavailable without edfio."""
    library = need("edfio", "edf", "EDF and BDF files")
    with open_regular(path, _LARGEST) as stream, _problems_of(path):
        records = find_records(path, stream)
        begins = begins_of_records(path, stream, records)
        held = _decode(library, records, read_records(path, stream, records, 0, 1))
        usable = [place for place, signal in enumerate(held) if _is_signal(signal)]
        signals = [held[place] for place in usable]
        others = [signal.label for place, signal in enumerate(held) if place not in usable]
        if not signals:
            raise DataError(f"{path} holds no signal.")
        names = tidy_names([signal.label for signal in signals])
        rates = [float(signal.sampling_frequency) for signal in signals]
        chosen, notes = choose(names, rates, wish, str(path))
        unit, factors = one_unit([signals[place].physical_dimension for place in chosen])
        each = signals[chosen[0]].samples_per_data_record
    places, starts = [usable[place] for place in chosen], _starts(path, begins, records, each)
    length = int(starts[-1]) + each
    if others:
        notes += (f"Channels of marks, or without a range of values, are left out: {', '.join(tidy_names(others))}.",)
    if length > records.count * each:
        notes += ("Gaps between records (EDF+D) are read as missing samples.",)

    def read(start: int, stop: int) -> Stretch:
        if stop > length:
            raise DataError(f"{path} ends before sample {stop:,}.")
        rows = np.full((len(places), stop - start), np.nan)
        first, last = int(np.searchsorted(starts, start, "right")) - 1, int(np.searchsorted(starts, stop))
        step = max(1, PIECE // records.size)
        with open_regular(path, _LARGEST) as stream, _problems_of(path):
            for begin in range(first, last, step):
                end = min(begin + step, last)
                piece = _decode(library, records, read_records(path, stream, records, begin, end))
                values = np.stack([piece[place].data for place in places])  # (channel, sample)
                _fill(rows, values, starts[begin:end] - start, each)
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


def _starts(path: Path, begins: NDArray[np.float64] | None, records: Records, each: int) -> NDArray[np.int64]:
    """Return the sample at which each record begins (record,). each: samples of a record.

    A step of up to one sample more or less is that of a clock which is not exact, and no gap.
    """
    starts = np.arange(records.count) * each
    if begins is None:
        return starts
    recorded = records.count * records.seconds
    gaps = (np.diff(begins) - records.seconds) * each / records.seconds  # in samples
    if not np.isfinite(gaps).all() or (gaps < -1).any():
        raise DataError(f"{path} is discontinuous (EDF+D), and its records go back in time.")
    if begins[-1] > _LONGEST * recorded:
        raise DataError(
            f"{path} holds {recorded:,.0f} s of signals in {begins[-1]:,.0f} s (EDF+D): write a file for each part."
        )
    starts[1:] += np.where(gaps > 1, gaps.round(), 0).astype(np.int64).cumsum()
    return starts


def _fill(rows: NDArray[np.float64], values: NDArray[np.float64], starts: NDArray[np.int64], each: int) -> None:
    """Put records into a window. starts: the places of their first samples in it, which may lie outside."""
    runs = np.flatnonzero(np.diff(starts, prepend=starts[0] - each - 1) != each)  # the first record after each gap
    for run, end in zip(runs, [*runs[1:], len(starts)], strict=True):
        place, skipped = int(starts[run]), max(0, -int(starts[run]))
        kept = values[:, run * each + skipped : end * each][:, : rows.shape[1] - place - skipped]
        rows[:, place + skipped : place + skipped + kept.shape[1]] = kept


def _decode(library: Any, records: Records, raw: bytes) -> Any:
    """Return the channels that edfio finds in these records, without annotations."""
    count = b"%-8d" % (len(raw) // records.size)
    read = library.read_bdf if records.bytes_each == 3 else library.read_edf
    return read(records.header[:236] + count + records.header[244:] + raw, header_encoding=records.encoding).signals


def _is_signal(signal: Any) -> bool:
    """Return whether the header says which values the samples of a channel stand for.

    CHB-MIT has channels without a range; the unit of BioSemi's marks is Boolean.
    """
    if signal.physical_dimension.casefold() == "boolean":
        return False
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
