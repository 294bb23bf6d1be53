"""List recordings in files that say their channels, unit and rate: EDF, WFDB, HDF5, MATLAB, DICOM and XML files.

Their headers are read, and no signal where the format keeps the two apart. Long recordings become several windows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clocs_core import ClocsError, DataError, Drop, Recording, Unavailable, Wish, open_recording
from clocs_plugins.arrays.layout import Found, keys_of

if TYPE_CHECKING:
    from clocs_plugins.arrays import ArraysOptions


def wish_of(options: ArraysOptions) -> Wish:
    """Return what the options ask of a file that holds more."""
    return Wish(options.names, options.sampling_rate or 0.0)


def describe_headed(root: Path, files: Sequence[Path], options: ArraysOptions, by_folder: bool) -> Found:
    """Describe recordings by their headers; files that cannot be read are drops. Raises DataError if all are.

    by_folder: the first folder below `root` is the patient. Otherwise it is the one that the file names, if each does.
    """
    held, drops, unread = _open_all(root, files, options)
    _refuse_other_order(root, held, options.names)
    rates = Counter(one.sampling_rate or options.sampling_rate for one in held.values())
    channels, notes = _common({path.relative_to(root).as_posix(): one for path, one in held.items()})
    notes = (*unread, *notes, *_overruled(list(held.values()), options))
    windows = [(path, window) for path, one in held.items() for window in _windows(one, options)]
    names = [path.relative_to(root) for path, _ in windows]
    patients = [
        name.parts[0] if by_folder else held[path].patient for name, (path, _) in zip(names, windows, strict=True)
    ]
    anonymous = not all(patients) or (len(set(patients)) == 1 and len(held) > 1)
    return Found(
        form=f"{len(held):,} {next(iter(held)).suffix or 'DICOM'} files" + (", by patient" if by_folder else ""),
        records=tuple(name.as_posix() + text for name, (_, (text, _)) in zip(names, windows, strict=True)),
        files=tuple(path for path, _ in windows),
        beside=tuple(held[path].files for path, _ in windows),
        table_keys=tuple(keys_of(name) for name in names),
        patients=None if anonymous else tuple(patients),
        channels=channels,
        channel_count=len(channels) if channels else _count(next(iter(held)), options),
        sampling_rate=rates.most_common(1)[0][0],
        shortest=min(length for _, (_, length) in windows),
        notes=notes,
        drops=drops,
    )


def _open_all(
    root: Path, files: Sequence[Path], options: ArraysOptions
) -> tuple[dict[Path, Recording], tuple[Drop, ...], tuple[str, ...]]:
    """Open the files; return those that have what was asked for, what is dropped, and what a reader must know."""
    held: dict[Path, Recording] = {}
    problems: list[tuple[Path, ClocsError]] = []
    for path in files:
        try:
            held[path] = open_recording(path, wish_of(options))
        except Unavailable:
            raise
        except DataError as problem:
            problems.append((path, problem))
    if not held:
        raise DataError(f"None of {len(files):,} files can be read. The first: {problems[0][1]}")
    lacking = _lacking(held, set(options.names))
    drops = [
        *(Drop("cannot be read", path.relative_to(root).as_posix()) for path, _ in problems),
        *(Drop(f"missing channel {name}", path.relative_to(root).as_posix()) for path, name in lacking.items()),
    ]
    first = f"{len(problems):,} of {len(files):,} files cannot be read. The first: {problems[0][1]}" if problems else ""
    return {path: one for path, one in held.items() if path not in lacking}, tuple(drops), (first,) if first else ()


def _lacking(held: dict[Path, Recording], wished: set[str]) -> dict[Path, str]:
    """Return the files that lack a channel that the user named and other files have, with its name."""
    if not any(wished <= set(one.channels or ()) for one in held.values()):
        return {}  # the names are new names for the channels
    missing = {path: sorted(wished - set(one.channels or ())) for path, one in held.items()}
    return {path: names[0] for path, names in missing.items() if names}


def _refuse_other_order(root: Path, held: Mapping[Path, Recording], names: tuple[str, ...]) -> None:
    """Raise DataError where new names are given in the order of the files, and files differ in that order."""
    orders: dict[tuple[str, ...], Path] = {}
    for path, one in held.items():
        if one.channels is not None:
            orders.setdefault(one.channels, path)
    if len(orders) < 2 or not names or any(set(names) <= set(own) for own in orders):
        return
    (first, place), (second, other) = list(orders.items())[:2]
    raise DataError(
        f"`names={list(names)}` gives channels new names by their order, and files differ in it: "
        f"{place.relative_to(root)} has {', '.join(first)}, {other.relative_to(root)} has {', '.join(second)}. "
        f"Name the channels as the files do, such as `names={list(first)}`, or keep only files of one order."
    )


def _overruled(held: Sequence[Recording], options: ArraysOptions) -> Iterator[str]:
    """Say where a rate or a unit was given and files say another: what is given is used, and nothing is converted."""
    rate, unit = options.sampling_rate, options.unit
    other = [one.sampling_rate for one in held if rate and one.sampling_rate and one.sampling_rate != rate]
    if other:
        yield f"{len(other):,} of {len(held):,} files say {other[0]:g} Hz; {rate:g} Hz was given, and is used for all."
    named = [one.unit for one in held if unit and one.unit and one.unit != unit]
    if named:
        yield f"{len(named):,} of {len(held):,} files say {named[0]}; {unit} was given, and is used without conversion."


def _common(held: Mapping[str, Recording]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the channels that all recordings have, and a note on the others. None: some name no channels."""
    if any(one.channels is None for one in held.values()):
        return None, ()
    counts = Counter(name for one in held.values() for name in one.channels or ())
    first = next(iter(held.values()))
    common = tuple(name for name in first.channels or () if counts[name] == len(held))
    if not common:
        commonest = ", ".join(f"{name} in {count:,}" for name, count in counts.most_common(5))
        usual = counts.most_common(1)[0][0]
        without = next(name for name, one in held.items() if usual not in (one.channels or ()))
        raise DataError(
            f"No channel is in all of {len(held):,} recordings ({commonest}); {without} lacks {usual}. Move recordings "
            "of other kinds away, or name the channels to read, so that those that lack one are left out: "
            "`names=[...]`."
        )
    left = [name for name in counts if name not in common]
    return common, (f"Channels that not every recording has are not read: {', '.join(left[:8])}.",) if left else ()


def _windows(one: Recording, options: ArraysOptions) -> Iterator[tuple[str, int]]:
    """Yield the name and the length of each window; the last one is longer by the rest, so that none is short."""
    rate = options.sampling_rate or one.sampling_rate
    size = one.length if rate is None else max(1, round(options.window * rate))
    count = max(1, one.length // size)
    for number in range(count):
        start, stop = number * size, (number + 1) * size if number < count - 1 else one.length
        yield (f"[{start}:{stop}]" if count > 1 else ""), stop - start


def _count(path: Path, options: ArraysOptions) -> int:
    """Return the number of channels of a file that does not name them."""
    return len(open_recording(path, wish_of(options)).read(0, 1).samples)
