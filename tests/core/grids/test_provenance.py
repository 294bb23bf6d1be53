"""What a page says of how it was made, against sums by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs

from clocs_core.grids.cells import Pretraining
from clocs_core.grids.invocations import Call, Invocation
from clocs_core.grids.notes import Note
from clocs_core.grids.provenance import say_making

NOW = datetime(2026, 3, 3, 9, 30, 5, tzinfo=UTC)
CALL = Call("python run_all.py b", lambda: NOW, datetime(2026, 3, 3, 9, tzinfo=UTC))
FIRST = Invocation(
    command="python run_all.py a",
    began="2026-03-01T10:00:00.000000+00:00",
    seconds=7200.0,
    at_once=4,
    done=1200,
    failed=1,
    machine="a processor, 2 cores",
    ended="stopped",
)
OTHER = attrs.evolve(
    FIRST, began="2026-03-02T10:00:00.000000+00:00", seconds=3600.0, done=5, failed=0, ended="finished"
)
THIS = attrs.evolve(OTHER, command=CALL.command, began=CALL.mark, seconds=600.0, at_once=2, done=1)


def job(seconds: float, invocation: str) -> Note:
    run = Pretraining(method="cmsc", dataset="demo")
    return Note(name="x", run=run, finished="x", seconds=seconds, invocation=invocation)


def test_a_resumed_page_adds_up_its_jobs_and_its_invocations() -> None:
    """Three jobs of 2 h + 10 min + 20 min; two of the three invocations had a share in them."""
    jobs = [job(7200.0, FIRST.began), job(600.0, FIRST.began), job(1200.0, THIS.began)]
    found = say_making(CALL, NOW, jobs, [FIRST, OTHER, THIS])
    assert found.sentences == (
        "Made 2026-03-03 09:30:05 UTC by command 1.",
        "Jobs of this page: 3, which took 2 h 30 min one after the other.",
        "Done in this invocation: 1, 2 at once, in 10 min of wall time. There before: 2.",
        "All invocations that did some of them: 2 h 10 min of wall time.",
    )
    assert found.commands == ("python run_all.py b", "python run_all.py a")
    assert found.invocations.headings[:2] == ("began (UTC)", "command")
    assert found.invocations.rows == (
        ("2026-03-01 10:00:00", "2", "2 h 00 min", "4", "1,200", "1", "2", "stopped", "a processor, 2 cores"),
        ("2026-03-02 10:00:00", "2", "60 min", "4", "5", "0", "0", "finished", "a processor, 2 cores"),
        ("2026-03-03 09:00:00", "1", "10 min", "2", "1", "0", "1", "finished", "a processor, 2 cores"),
    )


def test_a_page_says_what_it_does_not_know() -> None:
    """A job that outlived its grid has no time; an invocation that was killed, or of an older folder, has no file."""
    jobs = [job(30.0, FIRST.began), job(0.0, "2026-02-01T00:00:00.000000+00:00"), job(5.0, "")]
    found = say_making(CALL, NOW, jobs, [FIRST])
    assert found.sentences[1:] == (
        "Jobs of this page: 3, which took 35 s one after the other. Not in that time: 1 whose time is not known.",
        "Nothing was run for this page: it shows the folders as they stood.",
        "All invocations that did some of them: 2 h 00 min of wall time. "
        "Done by invocations that have no line (killed, still running, or of before lines were kept): 2.",
    )


def test_a_page_of_an_older_folder_has_its_own_command_at_least() -> None:
    """Folders of before invocations were kept still make a page."""
    found = say_making(CALL, NOW, [], [])
    assert found.commands == (CALL.command,)
    assert found.invocations.rows == ()
    assert found.sentences[1] == "Jobs of this page: 0, which took 0 s one after the other."
