"""Describe how a page was made: the commands as they were typed, when, how long it took, and on which machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import attrs

from clocs_core.grids.invocations import Call, Invocation
from clocs_core.grids.notes import Note
from clocs_core.grids.pace import say_duration
from clocs_core.grids.rows import Sheet


@attrs.frozen
class Making:
    """How a page was made. commands: each once, the page's own first; the sheet names them by number, from 1."""

    sentences: tuple[str, ...]
    commands: tuple[str, ...]
    invocations: Sheet


def say_making(call: Call, made: datetime, jobs: Sequence[Note], invocations: Sequence[Invocation]) -> Making:
    """Describe how a page was made. jobs: notes of the jobs that it shows, all done. invocations: all of the folder."""
    commands = tuple(dict.fromkeys([call.command, *(one.command for one in invocations)]))
    count = Counter(note.invocation for note in jobs)
    sentences = (
        f"Made {_say_time(made)} UTC by command 1.",
        _say_jobs(jobs),
        _say_this(call, len(jobs), count[call.mark], invocations),
        _say_all(count, invocations),
    )
    return Making(tuple(filter(None, sentences)), commands, _sheet(commands, count, invocations))


def _say_jobs(jobs: Sequence[Note]) -> str:
    timed = [note.seconds for note in jobs if note.seconds > 0]
    untold = len(jobs) - len(timed)
    but = f" Not in that time: {untold:,} whose time is not known." if untold else ""
    return f"Jobs of this page: {len(jobs):,}, which took {say_duration(sum(timed))} one after the other.{but}"


def _say_this(call: Call, total: int, here: int, invocations: Sequence[Invocation]) -> str:
    this = next((one for one in invocations if one.began == call.mark), None)
    if this is None:
        return "Nothing was run for this page: it shows the folders as they stood."
    how = f"{this.at_once} at once, in {say_duration(this.seconds)} of wall time"
    return f"Done in this invocation: {here:,}, {how}. There before: {total - here:,}."


def _say_all(count: Counter[str], invocations: Sequence[Invocation]) -> str:
    """Sum up all invocations that did some of the page's jobs."""
    known = [one for one in invocations if count[one.began]]
    lost = count.total() - sum(count[one.began] for one in known)
    wall = f"All invocations that did some of them: {say_duration(sum(one.seconds for one in known))} of wall time."
    why = "killed, still running, or of before lines were kept"
    but = f"Done by invocations that have no line ({why}): {lost:,}."
    return " ".join([*([wall] if known else []), *([but] if lost else [])])


def _sheet(commands: Sequence[str], count: Counter[str], invocations: Sequence[Invocation]) -> Sheet:
    jobs = ("jobs at once", "jobs done", "failed", "done of this page")
    headings = ("began (UTC)", "command", "wall time", *jobs, "ended", "machine")
    rows = tuple(
        (
            _say_time(datetime.fromisoformat(one.began)),
            str(commands.index(one.command) + 1),
            say_duration(one.seconds),
            *(f"{number:,}" for number in (one.at_once, one.done, one.failed, count[one.began])),
            one.ended,
            one.machine,
        )
        for one in invocations
    )
    return Sheet("", headings, rows, (False,) * len(rows))


def _say_time(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S}"
