"""Read a folder with a file per recording: one sub-folder per patient, or all files side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from clocs_core import DataError, DataNotFound, SignalFile, format_of, open_array_file, read_signal_file
from clocs_plugins.arrays.headed import describe_headed, wish_of
from clocs_plugins.arrays.layout import Found, axes_of, keys_of, natural, one_recording

if TYPE_CHECKING:
    from clocs_plugins.arrays import ArraysOptions

# Default axes of a file with one recording, by their number.
_ARRAY = {1: ("sample",), 2: ("channel", "sample")}
_DERIVED = frozenset(("derivatives", "sourcedata", "code", "stimuli"))  # folders of BIDS beside those of subjects
_TEXT = {2: ("sample", "channel")}

_LINES = (".csv", ".txt")  # text, a recording each
_PLAIN = (".npy", *_LINES)  # files of numbers alone: the user says what they are
_WHOLE = (".npz", ".parquet")
_MANY = "several recordings"  # the kind of those two
_NOTES = 4  # plain files beside one of those: what it is, and tables of patients, labels and parts


def find_single(root: Path, tables: Collection[Path]) -> Path:
    """Return the file with all recordings if `root` is it, or contains it without recordings; else the folder itself.

    Descends into folders that contain one folder and nothing else, as archives make them. Where that leads to a text
    file, the folder of its patient is kept: the folder above is returned, if `root` has it.
    """
    given = root
    while root.is_dir():
        inside = [path for path in _visible(root) if path.resolve() not in tables]
        if len(inside) == 1:
            root = inside[0]
            continue
        whole = [path for path in inside if path.suffix.lower() in _WHOLE]
        if not whole or _holds_recordings(root, tables):
            return root
        if len(whole) > 1:
            names = ", ".join(path.name for path in whole[:4])
            raise DataError(f"{root} has {names}: point `root=PATH` at one of them.")
        return whole[0]
    if given.is_dir() and root.suffix.lower() in _LINES:
        return given if root.parent == given else root.parent.parent
    return root


def describe_file(path: Path, options: ArraysOptions) -> Found:
    """Describe a file with one recording. Raises DataError where it is none."""
    if path.suffix.lower() in _LINES:
        return _describe_plain(path.parent, [path], options)
    if not says_itself(path):
        raise DataError(
            f"{path} is none of .npz, .npy, .h5, .mat, .parquet, .csv and .txt, nor a recording that says its sampling "
            "rate, nor a folder of recordings."
        )
    return describe_headed(path.parent, [path], options, by_folder=False)


def describe_folder(root: Path, options: ArraysOptions, tables: Collection[Path]) -> Found:
    """Describe a folder of recordings. Raises DataNotFound where none of its files can be one."""
    below, derived = _without_derived(root, [path for path in _below(root) if path.resolve() not in tables])
    files, aside = _of_one_kind(below)
    aside = (*derived, *aside)
    if not files:
        held = ", ".join(path.name for path in _visible(root)[:5]) or "nothing"
        raise DataNotFound(
            f"No recordings in {root}: looked for an .npz, .npy or .parquet, or for .npy, .csv and .txt files in one "
            f"folder per patient, or for recordings in .hea, .edf, .h5, .mat, .dcm or .xml files, and found {held}. "
            "Point `root=PATH` at the file or the folder that holds them."
        )
    files.sort(key=lambda path: natural(str(path.relative_to(root))))
    if says_itself(files[0]):
        found = describe_headed(root, files, options, by_folder=all(path.parent != root for path in files))
    else:
        found = _describe_plain(root, files, options)
    return attrs.evolve(found, notes=(*aside, *found.notes))


def _describe_plain(root: Path, files: Sequence[Path], options: ArraysOptions) -> Found:
    """Describe files of numbers alone: those in folders of patients if there are any, else all side by side."""
    below = [path for path in files if path.parent != root]
    outside = [path.name for path in files if path.parent == root] if below else []
    chosen = [path.relative_to(root) for path in below or files]
    first = _first_that_opens(below or files, options)
    smallest = _first_that_opens(sorted(below or files, key=lambda one: one.stat().st_size), options)
    lost = (f"Not read, for they are in no patient's folder: {', '.join(outside[:5])}.",) if outside else ()
    return Found(
        form=f"{len(chosen):,} files, " + ("one folder per patient" if below else "side by side"),
        records=tuple(path.as_posix() for path in chosen),
        files=tuple(below or files),
        table_keys=tuple(keys_of(one) for one in chosen),
        patients=tuple(path.parts[0] for path in chosen) if below else None,
        channels=first.channels,
        channel_count=len(first.samples),
        sampling_rate=first.sampling_rate,
        shortest=smallest.samples.shape[1],
        notes=(*lost, *(note for note in first.notes if note not in first.found)),  # what is found is counted later
    )


def read_file(path: Path, options: ArraysOptions, window: tuple[int, int | None] = (0, None)) -> SignalFile:
    """Read the recording of one file, or a window of it."""
    if says_itself(path):
        return read_signal_file(path, wish_of(options), *window)
    if path.suffix.lower() == ".npy":
        array = open_array_file(path).arrays[""]
        return SignalFile(one_recording(array.open(), axes_of(array, options.axes, _ARRAY, path.name)))
    found = read_signal_file(path)
    table = found.samples.T  # (line, column)
    names = axes_of(table, options.axes, _TEXT, path.name)
    channels = found.channels if names == ["sample", "channel"] else None
    return attrs.evolve(found, samples=one_recording(table, names), channels=channels)


def says_itself(path: Path) -> bool:
    """Return whether a file is of a format that says its sampling rate, and mostly its channels and their unit."""
    return path.suffix.lower() not in (*_PLAIN, *_WHOLE) and format_of(path) is not None


def _holds_recordings(root: Path, tables: Collection[Path]) -> bool:
    """Tell whether a folder with a file of arrays has a file for each recording: that one is then something else."""
    files, _ = _of_one_kind([path for path in _below(root) if path.resolve() not in tables])
    return bool(files) and (files[0].suffix.lower() not in _PLAIN or len(files) > _NOTES)


def _without_derived(root: Path, files: list[Path]) -> tuple[list[Path], tuple[str, ...]]:
    """Leave out what a BIDS data set keeps beside its recordings: copies of them would be patients of their own."""
    if not any(path.relative_to(root).parts[0].startswith("sub-") for path in files):
        return files, ()
    kept = [path for path in files if path.relative_to(root).parts[0] not in _DERIVED]
    folders = sorted({path.relative_to(root).parts[0] for path in files} & _DERIVED)
    left_out = f"Not read, since a BIDS data set has no recordings of its own there: {', '.join(folders)}."
    return kept, (left_out,) if folders else ()


def _of_one_kind(files: Sequence[Path]) -> tuple[list[Path], tuple[str, ...]]:
    """Keep the files of the kind that most are of, and say which others are left out.

    A folder of recordings may hold notes and tables as text, so that of equally many the others win over text.
    """
    headers = {path.with_suffix("") for path in files if path.suffix.lower() == ".hea"}
    kinds: dict[str, list[Path]] = {}
    for path in files:
        if path.suffix.lower() == ".mat" and path.with_suffix("") in headers:
            continue  # the signal of a header
        if path.suffix.lower() in (*_PLAIN, *_WHOLE):
            kinds.setdefault("" if path.suffix.lower() in _PLAIN else _MANY, []).append(path)
        elif (kind := format_of(path)) is not None:
            kinds.setdefault(kind.name, []).append(path)
    if not kinds.keys() - {_MANY}:
        return [], ()
    best = max(kinds, key=lambda kind: (kind != _MANY, len(kinds[kind]), kind != ""))
    counts = Counter(path.suffix for kind, held in kinds.items() if kind != best for path in held)
    others = ", ".join(f"{count:,} {ending or 'without an ending'}" for ending, count in counts.most_common(5))
    return kinds[best], (f"Files of other kinds are not read: {others}.",) if others else ()


def _below(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if _is_visible(path.relative_to(root)) and path.is_file()]


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _is_visible(Path(path.name)))


def _is_visible(path: Path) -> bool:
    return not any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def _first_that_opens(files: Sequence[Path], options: ArraysOptions) -> SignalFile:
    """Read the first file that can be read; the others are checked when they are loaded."""
    problems = []
    for path in files:
        try:
            return read_file(path, options)
        except (ValueError, FileNotFoundError) as problem:
            problems.append(str(problem).rstrip("."))
    raise DataError(f"None of {len(files):,} files can be read. The first, {files[0]}: {problems[0]}.")
