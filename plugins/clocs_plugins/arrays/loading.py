"""Read one recording from any kind of file that an entry names. Runs in worker processes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clocs_core import Entry, Record
from clocs_plugins.arrays.folders import read_file, says_itself
from clocs_plugins.arrays.numpyforms import read_numbered
from clocs_plugins.arrays.parquetfiles import read_rows

if TYPE_CHECKING:
    from clocs_plugins.arrays import ArraysOptions

_NUMBERED = re.compile(r"\[(\d+)\]$")  # x[12] in a file with many recordings; a file with one is named with its ending
_WINDOW = re.compile(r"\[(\d+):(\d+)\]$")  # night.edf[0:360000], samples of a long recording


def load_recording(entry: Entry, options: ArraysOptions) -> Record:
    """Read one recording: the file's own samples, and the gain by which they are divided to be in the unit."""
    path, number = entry.files[0], _NUMBERED.search(entry.record)
    if number is not None:
        found = read_numbered(path, int(number[1]), options.axes)
    elif path.suffix.lower() == ".parquet":
        found = read_rows(path, entry.record)
    else:
        window = _WINDOW.search(entry.record)
        found = read_file(path, options, (int(window[1]), int(window[2])) if window else (0, None))
    rate = options.sampling_rate or found.sampling_rate
    if rate is None:
        why = ", for its times have gaps or go back" if found.found else ""
        raise ValueError(f"the sampling rate is not known{why}: give it in Hz with `sampling_rate=HZ`")
    own = found.channels or tuple(map(str, range(len(found.samples))))
    headed = number is None and says_itself(path)
    # A file that names its channels is read by their names, in whichever order; other names replace those of the file.
    channels = own if found.channels and set(options.names) <= set(own) else options.names or own
    if found.channels and channels == options.names:
        _refuse_swap(own, options.names)
    # The remarks on files that do not say themselves are told once, by the listing, but for those on their samples.
    unit, gain, notes = options.unit or found.unit, found.gain * options.gain, found.notes if headed else found.found
    return Record(entry.patient, entry.record, channels, unit, rate, found.samples, entry.label, gain, notes)


def _refuse_swap(own: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Raise ValueError where a channel would get the name that the file gives another: it has another order."""
    for mine, new in zip(own, names, strict=False):
        if new != mine and new in own:
            raise ValueError(
                f"`names={list(names)}` would call the file's channel {mine!r} {new!r}, and it has a {new!r}"
            )
