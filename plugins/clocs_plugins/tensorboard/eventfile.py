"""TensorBoard's events files: their names, their framing and their first events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary

from clocs_plugins.tensorboard.records import frame_records

_NAME = re.compile(r"events\.out\.tfevents\.\d{10}\.(\d{4,})\.clocs")


def newest(folder: Path) -> Path | None:
    """Return the file that was begun last: counts rise over all files of a run, independent of their epochs."""
    found = [file for file in folder.glob("events.out.tfevents.*.clocs") if _NAME.fullmatch(file.name)]
    return max(found, key=_count_of, default=None)


def next_after(file: Path | None, first_step: int) -> str:
    """Return the name of the next file. TensorBoard reads the files of a run in the order of their names."""
    return f"events.out.tfevents.{first_step:010d}.{_count_of(file) + 1:04d}.clocs"


def results_after(last_step: int) -> str:
    """Return the name of the file with the results of a run. It is read last, whatever files the epochs are in."""
    return f"events.out.tfevents.{last_step + 1:010d}.results.clocs"


def replace(file: Path, content: bytes) -> None:
    """Replace a file in one move; the partial file has no `tfevents` in its name, so TensorBoard ignores it."""
    part = file.with_name(".part")
    part.write_bytes(content)
    part.replace(file)


def append(file: Path, events: Iterable[Event]) -> None:
    """Append events in one write; create the file if it does not exist."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as stream:
        stream.write(frame(events))


def frame(events: Iterable[Event]) -> bytes:
    """Serialise events with their lengths and checksums."""
    return frame_records(event.SerializeToString() for event in events)


def opening(first_step: int, wall_time: float) -> list[Event]:
    """Return a file's first events: its version, and a restart that discards known steps from `first_step` on."""
    start = SessionLog(status=SessionLog.START)
    return [version(wall_time), Event(wall_time=wall_time, step=first_step, session_log=start)]


def version(wall_time: float) -> Event:
    """Return the event that every file begins with."""
    return Event(wall_time=wall_time, file_version="brain.Event:2")


def make_event(step: int, wall_time: float, values: Sequence[Summary.Value]) -> Event:
    """Make one event with the values of a step."""
    return Event(wall_time=wall_time, step=step, summary=Summary(value=values))


def _count_of(file: Path | None) -> int:
    match = _NAME.fullmatch(file.name) if file else None
    return int(match[1]) if match else 0
