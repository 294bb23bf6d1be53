"""Offer the user's recordings: arrays, or files of the field's formats, with ids of patients and labels beside them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import attrs

from clocs_core import Dataset, Entry, Listing, Record, Task, hookimpl, option

_AXES = {"recording", "channel", "sample"}
_are_axes = (lambda axes: not axes or (set(axes) <= _AXES and "sample" in axes), "name recording, channel, sample")
_is_pattern = (lambda text: _compiles(text), "be a regular expression")
_positive = (lambda value: value is None or value > 0, "be positive")


def _compiles(text: str) -> bool:
    try:
        return re.compile(text) is not None
    except re.error:
        return False


@attrs.frozen
class ArraysOptions:
    """Facts that the files do not contain."""

    patients: Path | None = option(
        None, "File (csv, txt, npy) with the patient id of each recording.", reads=False, metavar="FILE"
    )
    labels: Literal["own", "none"] | Path = option(
        "own",
        "File (csv, txt, npy) with the class of each recording, by name, or its number for the task number; empty "
        "where unknown. own: those in the file of the recordings, if any; none: no labels.",
        reads=False,
        metavar="FILE",
    )
    sampling_rate: float | None = option(
        None,
        "Sampling rate in Hz, where the files do not say it. In a file with several rates, it chooses the channels.",
        check=_positive,
        metavar="HZ",
    )
    unit: str = option("", "Unit of the samples divided by the gain, such as mV.", metavar="UNIT")
    gain: float = option(1.0, "Gain: samples divided by it are in the unit.", check=_positive)
    names: tuple[str, ...] = option(
        (),
        "Names of all channels, in the order of the files; or some of those that the files name, to read only these.",
        metavar="NAMES",
    )
    axes: tuple[str, ...] = option((), "Axes of an array, such as recording,sample,channel.", check=_are_axes)
    patient_pattern: str = option(
        "",
        "Regular expression that finds the patient in the path of a file: its first group, or all that it matches.",
        check=_is_pattern,
        reads=False,
        metavar="REGEX",
    )
    window: float = option(
        3600.0,
        "Seconds of a recording that are read at once: longer ones are cut, where their format says how long they are.",
        check=_positive,
        metavar="SECONDS",
    )
    label_separator: str = option(
        ";", "Mark between several classes of one recording, for the task findings.", reads=False
    )
    parts: Path | None = option(
        None,
        "File (csv) with the part of each patient or recording: train, validation or test.",
        reads=False,
        metavar="FILE",
    )
    label_column: str = option(
        "",
        "Column of the table of labels, such as diagnosis; default: label, class, target or y.",
        reads=False,
        metavar="NAME",
    )
    label_unit: str = option("", "Unit of the labels, such as years, for the task number.", reads=False, metavar="UNIT")


def scan(root: Path, task: Task, options: ArraysOptions) -> Listing:
    """List the recordings of a file or a folder; the classes follow from their labels."""
    from clocs_plugins.arrays.listing import list_recordings

    return list_recordings(root, task, options)


def load(entry: Entry, options: ArraysOptions) -> Record:
    """Read one recording."""
    from clocs_plugins.arrays.loading import load_recording

    return load_recording(entry, options)


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the user's files as a data set."""
    return [
        Dataset(
            name="arrays",
            summary="your own recordings: arrays, EDF, WFDB, HDF5, MATLAB, DICOM, MUSE and aECG files, csv, parquet",
            modality="any",
            tasks=(Task("label"), Task("findings", kind="any_of"), Task("number", kind="number")),
            channels=(),
            scan=scan,
            load=load,
            options=ArraysOptions,
            revision=2,  # WFDB in one unit, sampling rates such as 1,000 Hz
            licence="your own",
        )
    ]
