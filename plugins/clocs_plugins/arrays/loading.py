"""Reads one recording, from whichever kind of file its entry names. Runs in worker processes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from clocs_core import Entry, Record
from clocs_plugins.arrays.folders import ONE_RECORDING, TEXT_RECORDING
from clocs_plugins.arrays.layout import axes_of, one_recording
from clocs_plugins.arrays.numpyfiles import headers, open_array
from clocs_plugins.arrays.numpyforms import ALL_RECORDINGS, facts_of
from clocs_plugins.arrays.parquetfiles import read_rows
from clocs_plugins.arrays.textfiles import read_heading, read_signal

if TYPE_CHECKING:
    from clocs_plugins.arrays import ArraysOptions
    from clocs_plugins.arrays.layout import Numbers

_NUMBERED = re.compile(r"\[(\d+)\]$")  # x[12] of a file with many recordings; files of one keep their ending


def load_recording(entry: Entry, options: ArraysOptions) -> Record:
    """Read one recording, samples as they are in the file, with the gain that makes them the unit."""
    path, kind = entry.files[0], entry.files[0].suffix.lower()
    rate, unit, names = options.sampling_rate, options.unit, None
    number = _NUMBERED.search(entry.record)
    samples: Numbers
    if number is not None:
        facts = facts_of(path)
        axes = axes_of(facts.signal.shape, options.axes, ALL_RECORDINGS, path.name)
        samples = one_recording(open_array(path, facts.signal), axes, int(number[1]))
        rate, unit, names = rate or facts.sampling_rate, unit or facts.unit, facts.channels
    elif kind == ".npy":
        samples = _read_npy(path, options.axes)
    elif kind == ".parquet":
        table, names = read_rows(path, entry.record)
        samples = one_recording(table, ["sample", "channel"], 0)
    else:
        table = read_signal(path)
        names = None if options.axes == ("channel", "sample") else read_heading(path)[0]
        axes = axes_of(table.shape, options.axes, TEXT_RECORDING, path.name)
        samples = one_recording(table, axes, 0)
    if rate is None:
        raise ValueError("the sampling rate is not known: give it with --sampling-rate")
    channels = options.names or names or tuple(map(str, range(len(samples))))
    return Record(entry.patient, entry.record, channels, unit, rate, samples, entry.label, options.gain)


def _read_npy(path: Path, asked: tuple[str, ...]) -> Numbers:
    header = headers(path)[""]
    if header.dtype.kind not in "iuf":
        raise ValueError(f"{path.name} has values of type {header.dtype}, expected numbers")
    return one_recording(open_array(path, header), axes_of(header.shape, asked, ONE_RECORDING, path.name), 0)
