"""Read one recording from one of the user's files, in any of the field's formats. No pickle is ever opened.

`FORMATS` is the one table of endings. Each format has a function that opens a file as a `Recording`: its header, and a
function that reads a stretch of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite, prod
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.data.array_file import HDF5, open_array_file
from clocs_core.data.dicom_file import is_dicom, open_dicom
from clocs_core.data.ecg_xml import open_ecg_xml
from clocs_core.data.edf_file import open_edf
from clocs_core.data.recording import ANYTHING, Recording, Stretch, Wish
from clocs_core.data.text_file import open_text
from clocs_core.data.wfdb import open_wfdb
from clocs_core.errors import DataError, DataNotFound

PATIENTS = ("patient", "patient_id", "subject")
"""Names under which a file of arrays may say whose recording it is."""

_MOST = 1 << 32  # bytes of samples that are read at once, as 64-bit floats


@attrs.frozen(eq=False)
class SignalFile:
    """The recording in a file. None, or an empty unit: the file does not say it.

    notes: remarks for the user on how the file was read.
    found: remarks on what was found in the samples, which are among the notes too.
    """

    samples: NDArray[np.floating | np.integer]  # (channel, sample); divided by `gain`, in `unit`
    channels: tuple[str, ...] | None = None
    sampling_rate: float | None = None  # Hz
    unit: str = ""
    gain: float = 1.0
    notes: tuple[str, ...] = ()
    found: tuple[str, ...] = ()


@attrs.frozen
class Format:
    """A format of recordings: its name, its endings, and the library that reads it with the extra that installs it."""

    name: str
    endings: tuple[str, ...]
    open: Callable[[Path, Wish], Recording]
    library: str = ""
    extra: str = ""


def open_recording(path: Path, wish: Wish = ANYTHING) -> Recording:
    """Open the recording in a file: read what its header says. Raises DataError where it is not one recording.

    DataNotFound where there is no such file, and Unavailable where the library of its format is not installed.
    """
    if not path.is_file():
        raise DataNotFound(f"There is no file {path}.")
    found = format_of(path)
    if found is None:
        known = ", ".join(ending for one in FORMATS for ending in one.endings)
        raise DataError(f"{path} is none of {known}; save it as one of these.")
    held = found.open(path, wish).only(wish.channels)
    if held.channels is not None and len(set(held.channels)) < len(held.channels):
        raise DataError(f"A channel of {path} is named twice: {', '.join(held.channels)}.")
    if found.library and not (held.sampling_rate is None or (held.sampling_rate > 0 and isfinite(held.sampling_rate))):
        raise DataError(f"{path} says a sampling rate of {held.sampling_rate:g}, expected a positive number of Hz.")
    return held


def read_signal_file(path: Path, wish: Wish = ANYTHING, start: int = 0, stop: int | None = None) -> SignalFile:
    """Read one recording, or its samples from `start` up to `stop`, in any format of `FORMATS`.

    Raises DataNotFound where there is no such file, and DataError where it is not one recording.
    """
    return read_part(open_recording(path, wish), str(path), start, stop)


def read_part(held: Recording, where: str, start: int = 0, stop: int | None = None) -> SignalFile:
    """Read an open recording, or its samples from `start` up to `stop`. where: its name in errors."""
    end = held.length if stop is None else min(stop, held.length)
    size = 8 * (end - start) * len(held.channels or ("",))
    if size > _MOST:
        raise DataError(
            f"{where} has {held.length:,} samples of {len(held.channels or ('',))} channels, which are {size:,} bytes; "
            "that is too much to read at once. Name the channels to read."
        )
    part = held.read(start, end)
    notes = held.notes + part.notes
    return SignalFile(part.samples, held.channels, held.sampling_rate, held.unit, held.gain, notes, part.notes)


def format_of(path: Path) -> Format | None:
    """Return the format of a file by its ending; DICOM files may have none."""
    ending = path.suffix.lower()
    found = next((one for one in FORMATS if ending in one.endings), None)
    if found is None and not re.search("[a-z]", ending) and path.is_file() and is_dicom(path):
        return next(one for one in FORMATS if one.open is open_dicom)
    return found


def _open_array(path: Path, wish: Wish) -> Recording:
    """Open (sample,), (channel, sample), or (sample, channel), which has more rows than columns."""
    plain = path.suffix.lower() in (".npy", ".npz")
    file = open_array_file(path) if plain else open_array_file(path, PATIENTS)
    names = file.signals
    if not names:
        raise DataError(f"{path} has no array of samples, it has {', '.join(file.arrays) or 'nothing'}; call it x.")
    if len(names) > 1:
        raise DataError(f"{path} has several arrays that may be the signal: {', '.join(names)}. Keep one, called x.")
    array, channels = file.arrays[names[0]], file.channels
    if array.dtype.kind not in "iuf":
        raise DataError(f"{path} has values of type {array.dtype}, expected numbers.")
    if len(array.shape) not in (1, 2) or 0 in array.shape:
        raise DataError(
            f"{path} has the shape {array.shape}, expected one recording: (sample,) or (channel, sample). Several "
            "recordings are a data set: `dataset=NAME`, `root=FILE`."
        )
    turned = len(array.shape) == 2 and array.shape[0] > array.shape[1]
    count = 1 if len(array.shape) == 1 else min(array.shape)
    if channels is not None and len(channels) != count:
        raise DataError(f"{path} has {len(channels)} names ({', '.join(channels)}) for {count} channels.")

    def read(start: int, stop: int) -> Stretch:
        window, every = slice(start, stop), slice(None)
        part = array.take((window,) if len(array.shape) == 1 else (window, every) if turned else (every, window))
        return Stretch(_as_samples(np.atleast_2d(part).T if turned else np.atleast_2d(part)))

    shape = " samples of ".join(f"{length:,}" for length in array.shape)
    who = None if plain else file.first_of(PATIENTS)
    return Recording(
        length=max(array.shape),
        read=read,
        channels=channels,
        sampling_rate=file.sampling_rate,
        unit=file.unit,
        patient=str(who.values()[0]) if who is not None and prod(who.shape) == 1 else "",
        notes=(f"{path.name} is read as {shape} channels.",) if turned else (),
    )


def _as_samples(array: NDArray[Any]) -> NDArray[np.floating | np.integer]:
    """Copy an array out of its file, in native byte order.

    The lowest value of an 8-bit or an unsigned type is an ordinary sample, not a missing one, so these become floats.
    """
    plain = array.dtype.kind == "f" or (array.dtype.kind == "i" and array.dtype.itemsize > 1)
    return np.array(array, dtype=array.dtype.newbyteorder("=") if plain else np.float64)


FORMATS = (
    Format("text", (".csv", ".txt"), open_text),
    Format("NumPy", (".npy", ".npz"), _open_array),
    Format("WFDB", (".hea",), open_wfdb, "wfdb"),
    Format("EDF and BDF", (".edf", ".bdf"), open_edf, "edfio", "edf"),
    Format("HDF5", HDF5, _open_array, "h5py", "hdf5"),
    Format("MATLAB", (".mat",), _open_array),
    Format("DICOM", (".dcm",), open_dicom, "pydicom", "dicom"),
    Format("MUSE and HL7 aECG", (".xml",), open_ecg_xml, "defusedxml", "xml"),
)
"""Every format of recordings, by its endings."""
