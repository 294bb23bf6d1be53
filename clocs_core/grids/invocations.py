"""Keep every call of the grid that ran jobs: how it was typed, when, for how long, and how many jobs ended.

A file in `invocations/` is written when an invocation ends, be it by Ctrl-C; `kill -9` loses it.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import attrs

from clocs_core.artifacts.documents import dump_record, read_object, structure_sealed
from clocs_core.files import write_atomically
from clocs_core.grids.notes import read_notes

_FOLDER = "invocations"


@attrs.frozen
class Call:
    """How the program was called. command: to be pasted. now: the time, in UTC. began: its first answer."""

    command: str
    now: Callable[[], datetime]
    began: datetime = attrs.field(default=attrs.Factory(lambda self: self.now(), takes_self=True))

    @property
    def mark(self) -> str:
        """The mark of this call in notes: its start in microseconds, since two calls may begin within a second."""
        return self.began.isoformat(timespec="microseconds")


@attrs.frozen(kw_only=True)
class Invocation:
    """A call that ran jobs.

    began: the mark of its notes, a time in UTC. seconds: until its last job had ended or been stopped;
    what the page took is not in it. at_once: how many jobs ran together. done, failed: how many of them ended so.
    machine: where the command was typed. ended: how the invocation itself did.
    """

    command: str
    began: str = attrs.field(validator=lambda _record, _field, value: _check_time(value))
    seconds: float
    at_once: int
    done: int
    failed: int
    machine: str
    ended: str = attrs.field(validator=attrs.validators.in_(("finished", "stopped", "broken off")))


def say_command(words: Sequence[str], home: str) -> str:
    """Quote the words of `sys.argv` so that they can be pasted into a shell.

    home: what a shell made of `~`; it is put back, since whoever typed `~` did not mean to tell their name.
    """
    return " ".join(["python", *(_pasted(word, home) for word in words)])


@contextmanager
def noted(call: Call, out: Path, at_once: int, machine: str) -> Iterator[None]:
    """Write a file about this call into the folder `out` when the block ends, however it ends."""
    ended = "broken off"
    try:
        yield
        ended = "finished"
    except KeyboardInterrupt:
        ended = "stopped"
        raise
    finally:
        notes = (note for _, note in read_notes(out) if note.invocation == call.mark and note.finished)
        count = Counter("failed" if note.error else "done" for note in notes)
        found = Invocation(
            command=call.command,
            began=call.mark,
            seconds=round((call.now() - call.began).total_seconds(), 3),
            at_once=at_once,
            done=count["done"],
            failed=count["failed"],
            machine=machine,
            ended=ended,
        )
        (out / _FOLDER).mkdir(parents=True, exist_ok=True)
        write_atomically(out / _FOLDER / f"{call.began:%Y%m%dT%H%M%S.%f}.json", dump_record(found))


def read_invocations(out: Path) -> tuple[Invocation, ...]:
    """Read the calls of a grid, in the order in which they began. Raises RunFolderError for a damaged file."""
    return tuple(map(_read, sorted((out / _FOLDER).glob("*.json"))))


def _read(path: Path) -> Invocation:
    what = f"{path} (about a call of the grid; it holds no score, and the page can be made without it)"
    return structure_sealed(read_object(path.read_text(encoding="utf-8"), what), Invocation, what)


def _pasted(word: str, home: str) -> str:
    """Quote a word where it needs it, part by part: a shell expands nothing within single quotes."""
    is_home = rf"(?<![^\s=:,'\"]){re.escape(home)}(?![^/\s:,'\"])"
    parts = re.split(is_home, word) if home.strip("/") else [word]
    return '"$HOME"'.join(shlex.quote(part) if part else "" for part in parts) or "''"


def _check_time(text: str) -> None:
    datetime.fromisoformat(text)  # ValueError where it is none
