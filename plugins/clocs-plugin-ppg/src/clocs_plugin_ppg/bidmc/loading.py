"""Read one recording of BIDMC: waveforms and vital signs as channels, at the rate of the waveforms."""

from __future__ import annotations

from clocs_core import Entry, Record, read_wfdb

from clocs_plugin_ppg.bidmc.numerics import hold, plain_name, read_numerics


def read_recording(entry: Entry, waveforms: tuple[str, ...], numerics: tuple[str, ...]) -> Record:
    """Load one recording. A channel that it does not have, as V or AVR in some, is NaN throughout.

    Units differ by channel: mV, none for PLETH, per minute, %. So the unit of a record is `mixed`.
    Raise DataError or OSError if a file is damaged.
    """
    import numpy as np

    found = read_wfdb(entry.files[0])
    waves = found.samples.astype(np.float64) / found.gain
    if found.samples.dtype.kind == "i":
        waves[found.samples == -32768] = np.nan
    rate, samples = found.header.sampling_rate, waves.shape[1]
    rows = {plain_name(name): row for name, row in zip(found.header.channels, waves, strict=True)}
    rows = {name: row for name, row in rows.items() if name in waveforms}
    if len(entry.files) > 2:
        each, values = read_numerics(entry.files[2])
        rows |= {name: hold(row, each, samples, rate) for name, row in values.items()}
    channels = (*waveforms, *numerics)
    absent = np.full(samples, np.nan)
    signal = np.stack([rows.get(name, absent) for name in channels])  # (channel, sample)
    return Record(entry.patient, entry.record, channels, "mixed", rate, signal, entry.label, tolerated=found.tolerated)
