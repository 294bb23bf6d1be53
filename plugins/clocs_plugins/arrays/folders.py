"""Read a folder with a file per recording: one sub-folder per patient, or all files side by side."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import attrs

from clocs_core import DataError, DataNotFound, SignalFile, open_array_file, read_signal_file
from clocs_plugins.arrays.layout import Found, axes_of, one_recording

# Default axes of a file with one recording, by their number.
_ARRAY = {1: ("sample",), 2: ("channel", "sample")}
_TEXT = {2: ("sample", "channel")}

_ENDINGS = (".npy", ".csv", ".txt")
_WHOLE = (".npz", ".parquet")


def find_single(root: Path, tables: Collection[Path]) -> Path:
    """Return the file with all recordings if `root` is it or contains only it; otherwise the folder itself.

    Descends into folders that contain one folder and nothing else, as archives make them.
    """
    while root.is_dir():
        inside = [path for path in _visible(root) if path.resolve() not in tables]
        if len(inside) == 1:
            root = inside[0]
            continue
        whole = [path for path in inside if path.suffix.lower() in _WHOLE]
        if len(whole) > 1:
            names = ", ".join(path.name for path in whole[:4])
            raise DataError(f"{root} has {names}: point `root=PATH` at one of them.")
        return whole[0] if whole else root
    return root


def describe_folder(root: Path, axes: tuple[str, ...], tables: Collection[Path]) -> Found:
    """Describe a folder of recordings. Raises DataNotFound where none of its files can be one."""
    files = [
        path
        for path in root.rglob("*")
        if path.suffix.lower() in _ENDINGS
        and _is_visible(path.relative_to(root))
        and path.resolve() not in tables
        and path.is_file()
    ]
    files.sort(key=lambda path: natural(str(path.relative_to(root))))
    if not files:
        held = ", ".join(path.name for path in _visible(root)[:5]) or "nothing"
        raise DataNotFound(
            f"No recordings in {root}: looked for an .npz, .npy or .parquet, or for .npy, .csv and .txt files in one "
            f"folder per patient, and found {held}. Point `root=PATH` at the file or the folder that holds them."
        )
    below = [path for path in files if path.parent != root]
    aside = [path.name for path in files if path.parent == root] if below else []
    chosen = [path.relative_to(root) for path in below or files]
    first = _first_that_opens(below or files, axes)
    return Found(
        form=f"{len(chosen):,} files, " + ("one folder per patient" if below else "side by side"),
        records=tuple(path.as_posix() for path in chosen),
        files=tuple(below or files),
        table_keys=tuple((one.as_posix(), one.with_suffix("").as_posix(), one.name, one.stem) for one in chosen),
        patients=tuple(path.parts[0] for path in chosen) if below else None,
        channels=first.channels,
        channel_count=len(first.samples),
        shortest=_first_that_opens(sorted(below or files, key=lambda one: one.stat().st_size), axes).samples.shape[1],
        notes=(f"Not read, for they are in no patient's folder: {', '.join(aside[:5])}.",) if aside else (),
    )


def read_file(path: Path, axes: tuple[str, ...]) -> SignalFile:
    """Read the recording of one file."""
    if path.suffix.lower() == ".npy":
        array = open_array_file(path).arrays[""]
        return SignalFile(one_recording(array.open(), axes_of(array, axes, _ARRAY, path.name)))
    found = read_signal_file(path)
    table = found.samples.T  # (line, column)
    names = axes_of(table, axes, _TEXT, path.name)
    channels = found.channels if names == ["sample", "channel"] else None
    return attrs.evolve(found, samples=one_recording(table, names), channels=channels)


def natural(text: str) -> list[tuple[int, int | str]]:
    """Return a key that sorts p2 before p10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d{1,18})", text)]


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _is_visible(Path(path.name)))


def _is_visible(path: Path) -> bool:
    return not any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def _first_that_opens(files: list[Path], axes: tuple[str, ...]) -> SignalFile:
    """Read the first file that can be read; the others are checked when they are loaded."""
    problems = []
    for path in files:
        try:
            return read_file(path, axes)
        except (ValueError, FileNotFoundError) as problem:
            problems.append(str(problem).rstrip("."))
    raise DataError(f"None of {len(files):,} files can be read. The first, {files[0]}: {problems[0]}.")
