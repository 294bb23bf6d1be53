"""Read WFDB recordings: a text file, `100.hea`, and signals in `100.dat` or `100.mat`, here those of format 16.

The signal file holds 16-bit integers, the channels interleaved sample by sample; a .mat file has the header of a
MATLAB 4 matrix before them. The package `wfdb` reads formats other than 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from clocs_core.data.recording import Recording, Stretch, Wish, choose, one_unit
from clocs_core.data.regular_file import LARGEST, is_passing, open_regular
from clocs_core.data.wfdb_header import Header, Signal, header_file, read_header
from clocs_core.errors import DataError, DataNotFound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@attrs.frozen(eq=False)
class WfdbRecord:
    """A recording: divided by `gain`, the samples are in `unit`.

    Where all channels have one gain and no baseline, samples are int16 as in the file, -32768 for a missing one;
    otherwise they are float64, in physical units, with NaN for a missing one, and the gain is 1.
    Voltages are in the unit of the first channel. `unit` names all units, with commas, where other channels differ.
    """

    header: Header
    samples: NDArray[np.int16] | NDArray[np.float64]  # (channel, sample)
    gain: float
    unit: str
    tolerated: tuple[str, ...] = ()  # faults of the header and of the signal


def read_wfdb(path: Path | str, header: Header | None = None) -> WfdbRecord:
    """Read a recording. `path` is as for `read_header`.

    header: used instead of a .hea file, where there is none; its signals' file is in the folder of `path`.

    Where the header declares more samples than the file has, the file's number is used, so no header can cost memory.
    Wrong checksums and first values are listed in `tolerated`; they are the only sign of damage.
    Raises DataError where the two files do not match, and OSError where they cannot be read.
    """
    path = Path(path)
    if header is None:
        header = read_header(path)
        if not _is_plain(header.signals):
            return _read_by_package(path, header)
    elif not _is_plain(header.signals):
        raise DataError(f"{path}: only signals of format 16, all in one file, can be read without a header file.")
    file, renamed = _signal_file(path, header)
    counts, found = _read_counts(file, header)
    notes = header.tolerated + renamed + found + _compare(counts, header.signals)
    signals = _in_one_unit(header.signals)
    samples, gain = _scale(counts, signals)
    return WfdbRecord(header, samples, gain, _unit(signals), notes)


def open_wfdb(path: Path, wish: Wish) -> Recording:
    """Open a recording: read its header, and its samples when they are asked for. Raises as `read_wfdb` does.

    Where channels have rates of their own, those of one rate are read: by default that of most.
    """
    header = read_header(path)
    if any(one.samples_per_frame > 1 for one in header.signals):
        return _open_frames(path, header, wish)
    plain, signals = _is_plain(header.signals), _in_one_unit(header.signals)
    notes, files = header.tolerated, _signal_files(header_file(path), header.signals)
    if plain:
        file, renamed = _signal_file(path, header)
        files = (file,)
        _, length, found = _extent(file, header)
        notes += renamed + found
    else:
        length = header.samples or _read_by_package(path, header).samples.shape[1]
        _refuse_absurd_length(header_file(path), header)

    def read(start: int, stop: int) -> Stretch:
        if not plain:
            return Stretch(_read_by_package(path, header, (start, stop)).samples)
        counts, _ = _read_counts(file, header, start, stop)
        faults = _compare(counts, header.signals) if (start, stop) == (0, length) else ()
        return Stretch(_scale(counts, signals)[0], faults)

    gain = _one_gain(signals) if plain else None
    return Recording(
        length=length,
        read=read,
        channels=header.channels,
        sampling_rate=header.sampling_rate,
        unit=_unit(signals),
        units=tuple(one.unit for one in signals),
        gain=gain or 1.0,
        notes=notes,
        files=files,
    )


def _open_frames(path: Path, header: Header, wish: Wish) -> Recording:
    """Open a recording whose frames have several samples of some channels: these have a higher rate than the frames."""
    import numpy as np

    file = header_file(path)
    rates = [header.sampling_rate * one.samples_per_frame for one in header.signals]
    places, notes = choose(header.channels, rates, wish, str(file))
    chosen = tuple(header.signals[place] for place in places)
    signals, each = _in_one_unit(chosen), chosen[0].samples_per_frame
    _refuse_absurd_length(file, header)

    def read(start: int, stop: int) -> Stretch:
        first, last = start // each, -(-stop // each)  # frames
        rows = [row[start - first * each : stop - first * each] for row in _frames(file, places, first, last)]
        return Stretch(_scaled_to(signals, chosen, np.stack(rows).astype(np.float64)))  # (channel, sample)

    return Recording(
        length=(header.samples or len(_frames(file, places[:1], 0, None)[0]) // each) * each,
        read=read,
        channels=tuple(one.name for one in chosen),
        sampling_rate=rates[places[0]],
        unit=_unit(signals),
        units=tuple(one.unit for one in signals),
        notes=header.tolerated + notes,
        files=_signal_files(file, chosen),
    )


def _is_plain(signals: tuple[Signal, ...]) -> bool:
    """Return whether all signals are in one file of 16-bit integers, interleaved sample by sample."""
    first = signals[0]
    return all(
        (one.format, one.samples_per_frame, one.skew, one.file, one.offset) == (16, 1, 0, first.file, first.offset)
        for one in signals
    )


def _signal_file(path: Path, header: Header) -> tuple[Path, tuple[str, ...]]:
    name = Path(header.signals[0].file).name  # a file name only: a header must not point to other folders
    file = path.parent / name
    if file.is_file():
        return file, ()
    other = header_file(path).with_suffix(file.suffix)
    if name and other.is_file():
        return other, (f"The header names {name}, which is not there; {other.name} was read.",)
    raise DataNotFound(f"{header_file(path)} describes {name!r}, which is not beside it.")


def _signal_files(header: Path, signals: Sequence[Signal]) -> tuple[Path, ...]:
    """List the files that signals are in, as far as they are there."""
    named = (header.parent / Path(name).name for name in dict.fromkeys(one.file for one in signals) if name)
    return tuple(file for file in named if isfile(file))  # noqa: PTH113  Path.is_file raises for a name that is too long


def _extent(file: Path, header: Header) -> tuple[int, int, tuple[str, ...]]:
    """Return the byte of the first sample, the samples of each channel, and notes on where the header is wrong."""
    channels = len(header.signals)
    with open_regular(file) as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        offset, notes = _first_sample(file, stream.read(20), header)
    there, rest = divmod(max(0, size - offset), 2 * channels)
    count = there if header.samples is None else min(there, header.samples)
    if count == 0:
        raise DataError(f"{file} has {size:,} bytes, which hold no sample of {channels} channels after byte {offset}.")
    if header.samples not in (None, there):
        notes += (f"The header declares {header.samples:,} samples, the file has {there:,}; {count:,} were read.",)
    elif rest:
        notes += (f"The file ends with {rest} bytes that are not a sample of every channel.",)
    return offset, count, notes


def _read_counts(
    file: Path, header: Header, start: int = 0, stop: int | None = None
) -> tuple[NDArray[np.int16], tuple[str, ...]]:
    """Read the integers of the file, (channel, sample), and notes on where the header is wrong."""
    import numpy as np

    channels = len(header.signals)
    offset, count, notes = _extent(file, header)
    count = min(count, count if stop is None else stop) - start
    with open_regular(file) as stream:
        stream.seek(offset + 2 * channels * start)
        raw = stream.read(2 * channels * count)
    interleaved = np.frombuffer(raw, dtype="<i2").reshape(count, channels)
    return np.array(interleaved.T, dtype=np.int16, order="C"), notes


def _first_sample(file: Path, start: bytes, header: Header) -> tuple[int, tuple[str, ...]]:
    """Return the byte at which samples begin. A MATLAB 4 file begins with type, rows, columns, and a name."""
    offset = header.signals[0].offset
    if file.suffix.lower() != ".mat":
        return offset, ()
    kind, rows, _, imaginary, name = (int.from_bytes(start[i : i + 4], "little") for i in range(0, 20, 4))
    if kind != 30 or imaginary or not 0 < name <= 64 or len(start) < 20:  # 30: a full matrix of int16, little-endian
        what = "a MATLAB 5 file" if start.startswith(b"MATLAB 5") else "none"
        raise DataError(f"{file} should be a MATLAB 4 matrix of 16-bit integers, but is {what}. Download it again.")
    if rows != len(header.signals):
        raise DataError(f"{file} has {rows} channels, but its header describes {len(header.signals)}.")
    if offset != 20 + name:
        return 20 + name, (f"The header has samples begin at byte {offset}, the file at {20 + name}.",)
    return offset, ()


def _compare(counts: NDArray[np.int16], signals: tuple[Signal, ...]) -> tuple[str, ...]:
    """Compare checksums and first values with the header, and return notes on differences."""
    import numpy as np

    sums = np.add.reduce(counts, axis=1, dtype=np.int16)  # wraps around, as a checksum does
    other_sum, other_start = [], []
    for signal, total, first in zip(signals, sums.tolist(), counts[:, 0].tolist(), strict=True):
        if signal.checksum is not None and (signal.checksum - total) % 65536:
            other_sum.append(signal)
        if signal.initial_value is not None and signal.initial_value != first:
            other_start.append(signal.name)
    notes: tuple[str, ...] = ()
    if other_sum and all(signal.checksum == 0 for signal in other_sum):
        notes += ("The header has no checksums, only zeros.",)
    elif other_sum:
        notes += (f"Checksums do not fit: {', '.join(signal.name for signal in other_sum)}.",)
    return notes + ((f"First values do not fit: {', '.join(other_start)}.",) if other_start else ())


def _scale(
    counts: NDArray[np.int16], signals: tuple[Signal, ...]
) -> tuple[NDArray[np.int16] | NDArray[np.float64], float]:
    import numpy as np

    if (gain := _one_gain(signals)) is not None:
        return counts, gain
    gains, baselines = [one.gain for one in signals], [one.baseline for one in signals]
    values = counts.astype(np.float64)
    values -= np.array(baselines, dtype=np.float64)[:, None]
    values /= np.array(gains)[:, None]
    values[counts == -32768] = np.nan
    return values, 1.0


def _one_gain(signals: tuple[Signal, ...]) -> float | None:
    """Return the gain of all channels, if they have one and no baseline: then samples stay as in the file."""
    gains = {one.gain for one in signals}
    return min(gains) if len(gains) == 1 and min(gains) > 0 and not any(one.baseline for one in signals) else None


def _in_one_unit(signals: tuple[Signal, ...]) -> tuple[Signal, ...]:
    """Return signals whose gains give every voltage in the unit of the first; signals of other units stay."""
    if len({one.unit for one in signals}) == 1:
        return signals
    unit, factors = one_unit([one.unit for one in signals])
    if "," in unit:
        return signals
    return tuple(
        attrs.evolve(one, gain=one.gain / factor, unit=unit)
        for one, factor in zip(signals, factors[:, 0].tolist(), strict=True)
    )


def _unit(signals: tuple[Signal, ...]) -> str:
    return ", ".join(dict.fromkeys(one.unit for one in signals))


def _read_by_package(path: Path, header: Header, part: tuple[int, int] | None = None) -> WfdbRecord:
    """Read other formats, several files, or several samples per frame by the package `wfdb`, which is slower.

    It averages several samples of a frame, so that all channels have the rate of the frames.
    """
    import numpy as np

    file = header_file(path)
    _refuse_absurd_length(file, header)
    start, stop = part or (0, None)
    samples = np.ascontiguousarray(_by_package(file, sampfrom=start, sampto=stop).p_signal.T, dtype=np.float64)
    averaged = ", ".join(one.name for one in header.signals if one.samples_per_frame > 1)
    notes = (f"Averaged to {header.sampling_rate:g} Hz: {averaged}.",) if averaged else ()
    signals = _in_one_unit(header.signals)
    scaled = _scaled_to(signals, header.signals, samples)
    return WfdbRecord(header, scaled, 1.0, _unit(signals), header.tolerated + notes)


def _frames(file: Path, places: Sequence[int], first: int, last: int | None) -> list[NDArray[np.float64]]:
    """Read channels from one frame up to another, each at its own rate."""
    found = _by_package(file, sampfrom=first, sampto=last, channels=list(places), smooth_frames=False)
    return list(found.e_p_signal)


def _by_package(file: Path, **how: Any) -> Any:
    import warnings

    try:
        with warnings.catch_warnings(action="ignore"):  # wfdb uses deprecated functions of pandas
            import wfdb

            return wfdb.rdrecord(str(file.with_suffix("")), **how)
    except Exception as problem:  # wfdb checks little and raises anything: KeyError, TypeError, struct.error
        raise DataError(f"{file} cannot be read: {type(problem).__name__}: {problem}") from problem


def _scaled_to(
    meant: tuple[Signal, ...], said: tuple[Signal, ...], samples: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bring channels, in place, from the units that the header says to those that are meant."""
    for row, one, other in zip(samples, said, meant, strict=True):
        if one.gain != other.gain:
            row *= one.gain / other.gain
    return samples


def _refuse_absurd_length(file: Path, header: Header) -> None:
    """Raise DataError for more samples than the files can hold: `wfdb` allocates what a header declares."""
    names = {signal.file for signal in header.signals}
    size = 0
    for name in names:
        try:
            with open_regular(file.parent / name) as stream:
                size += stream.seek(0, 2)
        except (OSError, ValueError) as problem:  # a name that no file can have is refused by what reads it
            if isinstance(problem, DataError) or is_passing(problem):
                raise
    per_frame = sum(signal.samples_per_frame for signal in header.signals)
    declared = (header.samples or 0) + max(signal.skew for signal in header.signals)
    # Formats up to 311 have at least 8 bits per sample; later ones are compressed, by less than 64.
    packed = 64 if any(signal.format > 311 for signal in header.signals) else 1
    if declared * per_frame > min(packed * size, LARGEST // 8):
        raise DataError(f"{file} declares {declared:,} samples, more than there can be in {size:,} bytes.")
