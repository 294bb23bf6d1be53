"""Every call of a grid leaves a file: its command can be pasted, its time and its jobs are its own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest
import run_all
from grid.flags import Request

from clocs_core.artifacts.documents import dump_record
from clocs_core.errors import RunFolderError
from clocs_core.grids.cells import Pretraining
from clocs_core.grids.executor import Job, LocalProcesses, Outcome
from clocs_core.grids.invocations import Call, Invocation, noted, read_invocations, say_command
from clocs_core.grids.notes import Note, note_path

FAKE = f"{sys.executable} -S -E {Path(__file__).parent / 'fake_grid_command.py'}"
BEGAN = datetime(2026, 3, 1, 12, 0, 0, 250, tzinfo=UTC)


def clock(*seconds: float) -> Callable[[], datetime]:
    """Tells these times, in seconds after the beginning, one at each call."""
    times: Iterator[datetime] = (BEGAN + timedelta(seconds=one) for one in seconds)
    return lambda: next(times)


def write_note(out: Path, name: str, error: str, invocation: str, finished: str = "x") -> None:
    note = Note(name=name, run=Pretraining(method="cmsc", dataset="demo"), error=error, invocation=invocation)
    path = note_path(out / "pretrained" / name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(dump_record(attrs.evolve(note, finished=finished)))


# ------------------------------------------------------------------------------------------------------------ commands


@pytest.mark.parametrize("home", ["/home/ada", "/"])
def test_a_shell_reads_a_command_as_it_was_typed(home: str) -> None:
    """What cannot be pasted does not say how a number was made; words hold spaces, quotes, stars and nothing."""
    words = [
        "run_all.py",
        "--out",
        "/home/ada/a b",
        "--command",
        "nice python '/home/ada/it.py'",
        "",
        "it's",
        "*",
        "$X",
    ]
    words += ["--root=/home/ada", "/home/adam/x", "/mnt/home/ada", "a\nb", "p=/home/ada/x:/home/ada/y", "/home/ada"]
    script = f"set -- {say_command(words, home)}; printf '%s\\0' \"$@\""
    done = subprocess.run(
        ["sh", "-c", script], env={"HOME": home, **_path()}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\0")[:-1] == ["python", *words]


def test_a_home_that_a_shell_put_in_is_taken_out_again() -> None:
    """A page is passed on: it says no more about whose machine it was than the person typed."""
    words = ["benchmarks/run_all.py", "--data-root", "/home/ada/ecg", "--root", "ptbxl=/home/ada/p q", "/home/adam"]
    expected = """python benchmarks/run_all.py --data-root "$HOME"/ecg --root ptbxl="$HOME"'/p q' /home/adam"""
    assert say_command(words, "/home/ada") == expected


def _path() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


# --------------------------------------------------------------------------------------------------------------- files


def test_a_file_counts_the_jobs_of_its_own_invocation(tmp_path: Path) -> None:
    """A folder is shared with invocations of before, and with others at the same time."""
    call = Call("python x.py", clock(0, 90.5))
    write_note(tmp_path, "old", "", "")
    with noted(call, tmp_path, 3, "a machine"):
        for name, error in (("a", ""), ("b", "broke"), ("c", "")):
            write_note(tmp_path, name, error, call.mark)
        write_note(tmp_path, "begun", "", call.mark, finished="")
        write_note(tmp_path, "theirs", "", "2026-03-01T12:00:00.000251+00:00")
    assert read_invocations(tmp_path) == (
        Invocation(
            command="python x.py",
            began="2026-03-01T12:00:00.000250+00:00",
            seconds=90.5,
            at_once=3,
            done=2,
            failed=1,
            machine="a machine",
            ended="finished",
        ),
    )


@pytest.mark.parametrize(("problem", "ended"), [(KeyboardInterrupt, "stopped"), (OSError, "broken off")])
def test_an_invocation_that_is_stopped_leaves_its_file(
    tmp_path: Path, problem: type[BaseException], ended: str
) -> None:
    """Hours that were stopped are hours that it took; and the problem is not swallowed."""
    with pytest.raises(problem), noted(Call("python x.py", clock(0, 7)), tmp_path, 1, ""):
        raise problem
    (found,) = read_invocations(tmp_path)
    assert (found.ended, found.seconds, found.done) == (ended, 7.0, 0)


def test_every_invocation_has_a_file_of_its_own(tmp_path: Path) -> None:
    """Two may end at the same moment: neither waits for the other."""
    for day, seconds in ((2, 1), (1, 2)):
        began = BEGAN + timedelta(days=day)
        with noted(Call("x", clock(seconds + 86400 * day), began), tmp_path, 1, ""):
            pass
    assert [one.seconds for one in read_invocations(tmp_path)] == [2.0, 1.0]  # in the order in which they began
    assert read_invocations(tmp_path / "empty") == ()


@pytest.mark.parametrize("text", ['{"command": "x"}', "no JSON"])
def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path: Path, text: str) -> None:
    """It holds times only, so that taking it away costs no score."""
    (tmp_path / "invocations").mkdir()
    (tmp_path / "invocations" / "one.json").write_text(text)
    with pytest.raises(RunFolderError, match=r"one\.json .*the page can be made without it"):
        read_invocations(tmp_path)


def test_a_file_with_a_date_that_is_none_is_refused(tmp_path: Path) -> None:
    """The page says when an invocation began: it would fail there, far from the file."""
    with noted(Call("x", clock(0, 1)), tmp_path, 1, ""):
        pass
    (path,) = (tmp_path / "invocations").iterdir()
    path.write_text(path.read_text().replace("2026-03-01", "yesterday"))
    with pytest.raises(RunFolderError, match="invalid value"):
        read_invocations(tmp_path)


# ----------------------------------------------------------------------------------------------------------- the story


class Interrupted(LocalProcesses):
    """Somebody types Ctrl-C when the third job is handed over, the first two having ended."""

    came = 0

    def submit(self, job: Job) -> Future[Outcome]:
        self.came += 1
        if self.came == 3:
            signal.raise_signal(signal.SIGINT)
        return super().submit(job)


def test_the_page_of_a_resumed_grid_tells_every_invocation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is kept says by which commands, when, and in what time it was made, also where one was stopped."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # a repository in one's own would be shown as "$HOME"/...
    grid = ["--methods", "cmsc,simclr", "--datasets", "demo", "--seeds", "2", "--out", str(tmp_path / "out")]
    grid += ["--command", FAKE]

    def open_executor(request: Request, say: Callable[[str], None]) -> Interrupted:
        return Interrupted(request.command, 1, lambda: 0.0)

    assert run_all.main([*grid, "--jobs", "4"], open_executor) == 130
    assert run_all.main(grid) == 0
    stopped, finished = read_invocations(tmp_path / "out")
    assert (stopped.ended, stopped.done, stopped.at_once) == (
        "stopped",
        4,
        1,
    )  # two jobs of two parts; what the executor took, not --jobs
    assert (finished.ended, finished.done, finished.failed) == ("finished", 4, 0)
    assert stopped.began < finished.began
    page, html = ((tmp_path / "out" / f"grid.{kind}").read_text() for kind in ("md", "html"))
    typed = shlex.join(["python", "benchmarks/run_all.py", *grid])
    assert page.count(f"Command 1:\n\n```sh\n{typed}\n```\n") == 1
    assert page.count(f"Command 2:\n\n```sh\n{typed} --jobs 4\n```\n") == 1
    assert "Done in this invocation: 4, 1 at once" in page
    assert "There before: 4." in page
    assert page.index("## How this was made") < page.index("| stopped |") < page.index("## Environment")
    assert '<section id="making">' in html
    assert "<td>stopped</td>" in html
    assert "--jobs 4</code>" in html
