"""A folder with a file per recording: one sub-folder per patient, or all files side by side."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from clocs_core import DataError, DataNotFound
from clocs_plugins.arrays.layout import Found, axes_of, recordings_of
from clocs_plugins.arrays.numpyfiles import headers
from clocs_plugins.arrays.textfiles import read_heading, read_signal

ONE_RECORDING = {1: ("sample",), 2: ("channel", "sample")}
"""What the axes of a file with one recording are unless the user says otherwise, by how many there are."""

TEXT_RECORDING = {2: ("sample", "channel")}
"""The same for text: a line per sample."""

_ENDINGS = (".npy", ".csv", ".txt")
_WHOLE = (".npz", ".parquet")


def find_single(root: Path, tables: Collection[Path]) -> Path:
    """The file that holds all recordings, where `root` is it or has nothing else in it; otherwise the folder itself.

    Folders that hold one folder and nothing else, as archives make them, are gone through.
    """
    while root.is_dir():
        inside = [path for path in _visible(root) if path.resolve() not in tables]
        if len(inside) == 1:
            root = inside[0]
            continue
        whole = [path for path in inside if path.suffix.lower() in _WHOLE]
        if len(whole) > 1:
            raise DataError(f"{root} has {', '.join(path.name for path in whole[:4])}: point `--root` at one of them.")
        return whole[0] if whole else root
    return root


def describe_folder(root: Path, axes: tuple[str, ...], tables: Collection[Path]) -> Found:
    """What a folder of recordings holds. Raises DataNotFound where none of its files can be one."""
    files = [
        path
        for path in root.rglob("*")
        if path.suffix.lower() in _ENDINGS and _is_visible(path.relative_to(root)) and path.resolve() not in tables
    ]
    files = sorted((path for path in files if path.is_file()), key=lambda path: natural(str(path.relative_to(root))))
    below = [path for path in files if path.parent != root]
    if not files:
        held = ", ".join(path.name for path in _visible(root)[:5]) or "nothing"
        raise DataNotFound(
            f"No recordings in {root}: looked for an .npz, .npy or .parquet, or for .npy, .csv and .txt files in one "
            f"folder per patient, and found {held}. Point `--root` at the file or the folder that holds them."
        )
    aside = [path.name for path in files if path.parent == root] if below else []
    chosen = below or files
    names, count = _first_that_opens(chosen, axes)
    records = tuple(path.relative_to(root).as_posix() for path in chosen)
    return Found(
        form=f"{len(chosen):,} files, " + ("one folder per patient" if below else "side by side"),
        records=records,
        files=tuple(chosen),
        table_keys=tuple(
            (record, record.rpartition(".")[0], Path(record).name, Path(record).stem) for record in records
        ),
        patients=tuple(path.relative_to(root).parts[0] for path in chosen) if below else None,
        channels=names,
        channel_count=count,
        notes=(f"Not read, for they are in no patient's folder: {', '.join(aside[:5])}.",) if aside else (),
    )


def natural(text: str) -> list[tuple[int, int | str]]:
    """A key that sorts p2 before p10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", text)]


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _is_visible(Path(path.name)))


def _is_visible(path: Path) -> bool:
    return not any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def _first_that_opens(files: list[Path], axes: tuple[str, ...]) -> tuple[tuple[str, ...] | None, int]:
    """The channels of the first file that can be read; the others are looked at when they are loaded."""
    first: Exception | None = None
    for path in files:
        try:
            if path.suffix.lower() != ".npy":
                return (None, len(read_signal(path))) if axes == ("channel", "sample") else read_heading(path)
            header = headers(path)[""]
            return None, recordings_of(header.shape, axes_of(header.shape, axes, ONE_RECORDING, path.name))[1]
        except (ValueError, OSError) as problem:
            first = first or problem
    raise DataError(f"None of {len(files):,} files can be read. The first, {files[0]}: {first}.".replace("..", "."))
