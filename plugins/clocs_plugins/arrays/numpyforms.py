"""Read one .npy or .npz file that holds all recordings."""

from __future__ import annotations

from pathlib import Path

from clocs_core import ArrayFile, DataError, SignalFile, StoredArray, open_array_file
from clocs_plugins.arrays.layout import Found, axes_of, one_recording
from clocs_plugins.arrays.tables import LABEL, PATIENT, as_texts

_PATIENT = (*PATIENT, "ids")

# Default axes of an array of recordings, by their number.
_AXES = {1: ("sample",), 2: ("recording", "sample"), 3: ("recording", "channel", "sample")}


def describe_array(path: Path, asked: tuple[str, ...]) -> Found:
    """Describe a file of recordings. Raises DataError in one sentence where it cannot be used."""
    file, signal, axes = _open(path, asked)
    size = dict(zip(axes, signal.shape, strict=True))
    count = size.get("recording", 1)
    owners, labels = file.first_of(_PATIENT), file.first_of(LABEL)
    return Found(
        form=f"{signal}, {' x '.join(map(str, signal.shape))} ({', '.join(axes)})",
        records=tuple(f"{path.stem}[{number}]" for number in range(count)),
        files=(path,) * count,
        patients=as_texts(owners) if owners else None,
        labels=as_texts(labels) if labels else None,
        channels=file.channels,
        channel_count=size.get("channel", 1),
        sampling_rate=file.sampling_rate,
        shortest=size["sample"],
    )


def read_numbered(path: Path, number: int, asked: tuple[str, ...]) -> SignalFile:
    """Read one of the recordings of a file."""
    file, signal, axes = _open(path, asked)
    return SignalFile(one_recording(signal.open(), axes, number), file.channels, file.sampling_rate, file.unit)


def _open(path: Path, asked: tuple[str, ...]) -> tuple[ArrayFile, StoredArray, list[str]]:
    file = open_array_file(path, beside=(*_PATIENT, *LABEL))
    if not file.signals:
        held = ", ".join(file.arrays) or "nothing"
        raise DataError(f"{path.name} has no array of signals, it has {held}; call it x, as in np.savez(file, x=…).")
    signal = file.arrays[file.signals[0]]
    return file, signal, axes_of(signal, asked, _AXES, str(signal))
