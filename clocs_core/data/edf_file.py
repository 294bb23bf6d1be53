"""Read EDF, EDF+ and BDF recordings by pyEDFlib, in physical units; channels of annotations are left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from clocs_core.data.recording import Recording, Stretch, Wish, choose, need, one_unit, tidy_names
from clocs_core.data.regular_file import is_passing, open_regular
from clocs_core.errors import DataError

_LARGEST = 1 << 38  # bytes; only the window that is asked for is read
_UNKNOWN = {"", "X", "x"}  # EDF+ writes X where it does not say who it is


def open_edf(path: Path, wish: Wish) -> Recording:
    """Open a recording. Raises DataError where it is damaged, and Unavailable without pyEDFlib."""
    with _reader(path) as file:
        count = int(file.signals_in_file)
        names = tidy_names(file.getSignalLabels())
        rates = [float(file.getSampleFrequency(place)) for place in range(count)]
        if not count or min(rates) <= 0:
            raise DataError(f"{path} holds no signal.")
        places, notes = choose(names, rates, wish, str(path))
        lengths = file.getNSamples()
        unit, factors = one_unit([file.getPhysicalDimension(place) for place in places])
        patient = str(file.getPatientCode()).strip()

    def read(start: int, stop: int) -> Stretch:
        with _reader(path) as file:
            rows = [file.readSignal(place, start, stop - start) for place in places]
        if any(len(row) != stop - start for row in rows):
            raise DataError(f"{path} ends before sample {stop:,}.")
        return Stretch(np.stack(rows).astype(np.float64) * factors)  # (channel, sample)

    return Recording(
        length=int(min(lengths[place] for place in places)),
        read=read,
        channels=tuple(names[place] for place in places),
        sampling_rate=rates[places[0]],
        unit=unit,
        patient="" if patient in _UNKNOWN else patient,
        notes=notes,
    )


@contextmanager
def _reader(path: Path) -> Iterator[Any]:
    library = need("pyedflib", "edf", "EDF and BDF files")
    with open_regular(path, _LARGEST) as stream:  # the library opens whatever has this name: a pipe, a folder
        _refuse_cut(path, stream)
    file = None
    try:
        file = library.EdfReader(str(path), library.DO_NOT_READ_ANNOTATIONS)
        yield file
    except DataError:
        raise
    except (OSError, ValueError, IndexError, UnicodeError, ArithmeticError, MemoryError) as problem:
        if is_passing(problem):
            raise
        text = " ".join(str(problem).split()).replace(f"{path}: ", "").rstrip(".")  # the library names the file too
        raise DataError(f"{path} cannot be read as EDF: {text}.") from None
    finally:
        if file is not None:
            file.close()


def _refuse_cut(path: Path, stream: BinaryIO) -> None:
    """Raise DataError for a file that is no EDF or BDF, or has another size than its header says.

    The library prints to the console what it thinks of such files.
    """
    start, held = stream.read(256), stream.seek(0, 2)
    bytes_each = {b"0       ": 2, b"\xffBIOSEMI": 3}.get(start[:8])
    if len(start) < 256 or bytes_each is None:
        raise DataError(f"{path} does not begin as EDF and BDF files do; it has {held:,} bytes.")
    try:
        head, records, signals = (int(start[place]) for place in (slice(184, 192), slice(236, 244), slice(252, 256)))
        stream.seek(256 + 216 * signals)
        samples = [int(stream.read(8)) for _ in range(min(max(signals, 0), 4096))]
    except ValueError:
        raise DataError(f"{path} cannot be read as EDF: its header has no number where one belongs.") from None
    if head + records * sum(samples) * bytes_each != held or records < 1 or head != 256 * (signals + 1):
        raise DataError(
            f"{path} cannot be read as EDF: its header describes {records:,} records of {sum(samples):,} samples, "
            f"which is not what {held:,} bytes hold; the recording may have been cut short."
        )
