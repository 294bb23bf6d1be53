"""Describe an error that nobody foresaw in one sentence: what was being done, with which file, and whom to tell."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from clocs_core.files import explain
from clocs_core.settings.places import data_root

if TYPE_CHECKING:
    from clocs_core.plugins.host import Plugin


def describe_unforeseen(problem: BaseException, plugins: Iterable[Plugin] = ()) -> str:
    """Describe an exception that is no error of the user, as far as anybody knows."""
    file, plugin = file_at_hand(problem), plugin_at_fault(problem, plugins)
    near = f", with {file}" if file is not None else ""
    whom = "the authors of clocs" if plugin is None else f"the authors of the plugin {plugin.name!r}"
    text = " ".join(str(problem).split())
    return (
        f"Unforeseen error{_doing(problem)}{near}: {type(problem).__name__}{': ' if text else ''}{text}. Please report "
        f"it to {whom}, with the output of the same command and --traceback."
    )


def describe_io(problem: OSError) -> str:
    """Describe an error of a disk or of permissions, with its file, and the room on a full disk."""
    file = file_at_hand(problem)
    where = _doing(problem) if file is None else f" with {file}"
    if isinstance(problem.filename, (str, bytes)):
        file = Path(os.fsdecode(problem.filename))
        where = f" {file}"
    elsewhere = (
        " Name another data folder with --data-root, or by CLOCS_DATA." if _is_data_folder(problem, file) else ""
    )
    return f"I/O error{where}: {explain(problem, file or Path())}. Files that were on disk are intact.{elsewhere}"


def _is_data_folder(problem: OSError, file: Path | None) -> bool:
    """Return whether the data folder cannot be made: the user's folder may lie on a system that stores nothing."""
    return isinstance(problem, PermissionError) and file is not None and data_root(None).is_relative_to(file)


def file_at_hand(problem: BaseException) -> Path | None:
    """Return the file that the innermost function held in a variable when it failed; None where none did."""
    for frame in _innermost_first(problem):
        for value in frame.f_locals.values():
            if isinstance(value, Path) and value.is_file():
                return value
            if isinstance(value, io.IOBase) and isinstance(name := getattr(value, "name", None), str):
                return Path(name)
    return None


def plugin_at_fault(problem: BaseException, plugins: Iterable[Plugin]) -> Plugin | None:
    """Return the plugin that the innermost function of clocs or of a plugin belongs to; None where it is core."""
    packages = {plugin.module.__name__: plugin for plugin in plugins}
    for frame in _innermost_first(problem):
        module = str(frame.f_globals.get("__name__", ""))
        for package, plugin in packages.items():
            if module == package or module.startswith(f"{package}."):
                return plugin
        if module.startswith("clocs_core."):
            return None
    return None


def _doing(problem: BaseException) -> str:
    """Return the stage that the display noted, such as " while preparing recordings"."""
    return "".join(f" {note}" for note in getattr(problem, "__notes__", ())[:1])


def _innermost_first(problem: BaseException) -> Iterator[FrameType]:
    frames, trace = [], problem.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    yield from reversed(frames)
