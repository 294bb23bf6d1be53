"""A job is run once, by one process at a time, whatever happens to whoever started it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from clocs_core.grids.executor import Job, LocalProcesses

FILL = (  # in short sleeps: an interrupt that comes just before the system call is raised when the call returns
    "import sys, time, pathlib; f = pathlib.Path(sys.argv[1]); f.mkdir(exist_ok=True); "
    "(f / 'settings.toml').write_text(''); until = time.monotonic() + float(sys.argv[2])\n"
    "while time.monotonic() < until: time.sleep(0.02)\n"
    "open(f.parent / 'ran', 'a').write(sys.argv[3] + '\\n'); (f / 'report.json').write_text('{}')"
)
PREFIX = (sys.executable, "-S", "-E", "-c", FILL)


def job(folder: Path, seconds: float = 0.0) -> Job:
    fresh, resume = ((str(folder), str(seconds), word) for word in ("fresh", "resume"))
    return Job(name=folder.name, folder=folder, fresh=fresh, resume=resume)


def ran(folder: Path) -> list[str]:
    return (folder / "ran").read_text().split() if (folder / "ran").exists() else []


def test_a_job_is_begun_resumed_or_left_by_what_its_folder_holds(tmp_path: Path) -> None:
    """settings.toml says that it was begun, report.json that it is finished."""
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "settings.toml").touch()
    (tmp_path / "finished").mkdir()
    (tmp_path / "finished" / "report.json").touch()
    with LocalProcesses(PREFIX, 1, time.monotonic) as executor:
        outcomes = [executor.submit(job(tmp_path / name)).result() for name in ("new", "begun", "finished")]
    assert ran(tmp_path) == ["fresh", "resume"]
    assert [outcome.error for outcome in outcomes] == ["", "", ""]
    assert outcomes[0].seconds > 0
    assert outcomes[2].seconds == 0


def test_a_command_that_fails_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    """What a person needs is in the line that begins with Error, not in the exit code alone."""
    words = (sys.executable, "-c", "print('Error: no such thing.'); print('more'); raise SystemExit(2)")
    with LocalProcesses(words, 1, time.monotonic) as executor:
        outcome = executor.submit(job(tmp_path / "a")).result()
    assert outcome.error == "Error: no such thing. (exit code 2; a.log)"


def test_the_error_of_a_command_is_of_this_attempt(tmp_path: Path) -> None:
    """A log holds all attempts: last week's full disk must not be blamed for what was killed today."""
    words = (sys.executable, "-S", "-c", "import os; os.kill(os.getpid(), 9)")
    one = job(tmp_path / "a")
    one.log.write_text("Error: no space left.\n")
    with LocalProcesses(words, 1, time.monotonic) as executor:
        outcome = executor.submit(one).result()
    assert outcome.error == "it said nothing (killed by signal 9; a.log)"


def test_a_command_that_ends_well_without_a_report_has_failed(tmp_path: Path) -> None:
    """A report is what says that a job is finished."""
    with LocalProcesses((sys.executable, "-c", "pass"), 1, time.monotonic) as executor:
        outcome = executor.submit(job(tmp_path / "a")).result()
    assert outcome.error == "it said nothing (exit code 0; a.log)"


def test_a_program_that_is_not_there_costs_its_job_only(tmp_path: Path) -> None:
    """The error becomes an outcome; a grid goes on."""
    with LocalProcesses(("no-such-program-of-anybody",), 1, time.monotonic) as executor:
        outcome = executor.submit(job(tmp_path / "a")).result()
    assert outcome.error.startswith("The system refused a: ")


def test_several_jobs_run_at_once(tmp_path: Path) -> None:
    """Four jobs of 0.4 s, four at once: each is there before the first has ended."""
    script = (
        "import sys, time, pathlib; f = pathlib.Path(sys.argv[1]); f.mkdir(); n = 0\n"
        "while n < 200 and len([p for p in f.parent.iterdir() if p.is_dir()]) < 4: time.sleep(0.05); n += 1\n"
        "(f / 'report.json').write_text('{}') if n < 200 else None"
    )
    with LocalProcesses((sys.executable, "-S", "-c", script), 4, time.monotonic) as executor:
        waiting = [executor.submit(job(tmp_path / str(number))) for number in range(4)]
        assert [one.result().error for one in waiting] == ["", "", "", ""]


def test_a_folder_that_another_process_works_on_is_waited_for(tmp_path: Path) -> None:
    """A command may outlive the grid that started it: it holds the lock that it was given."""
    one = job(tmp_path / "a", 0.5)
    lock = os.open(one.lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    left_over = subprocess.Popen([*PREFIX, *one.fresh], pass_fds=(lock,))
    os.close(lock)  # its grid was killed
    with LocalProcesses(PREFIX, 1, time.monotonic) as executor:
        assert executor.submit(one).result().error == ""
    left_over.wait()
    assert ran(tmp_path) == ["fresh"]


def test_a_grid_that_waits_for_another_process_says_so_and_can_be_stopped(tmp_path: Path) -> None:
    """An orphan may hang for ever; Ctrl-C must not hang with it, and a person must know what is waited for."""
    one, said = job(tmp_path / "a"), []
    lock = os.open(one.lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with LocalProcesses(PREFIX, 1, time.monotonic, say=said.append) as executor:
            waiting = executor.submit(one)
            while not said:
                time.sleep(0.01)
            time.sleep(0.5)  # two more looks at the lock
            began = time.monotonic()
    finally:
        os.close(lock)
    assert time.monotonic() - began < 5
    assert said == [f"waiting for a: another process works on it and holds {one.lock}"]
    assert waiting.result().error == "Stopped while another process worked on it."
    assert ran(tmp_path) == []


START_AND_DIE = """
import os, sys, time
from pathlib import Path
import pytest

from clocs_core.grids.executor import Job, LocalProcesses
prefix, folder, fresh = eval(sys.argv[1]), Path(sys.argv[2]), eval(sys.argv[3])
executor = LocalProcesses(prefix, 1, time.monotonic)
executor.submit(Job(name="a", folder=folder, fresh=fresh, resume=fresh))
while not (folder / "settings.toml").exists():
    time.sleep(0.01)
os.kill(os.getpid(), 9)
"""


def test_a_command_whose_grid_was_killed_is_not_run_twice(tmp_path: Path) -> None:
    """It goes on alone, and holds the lock of its job: the next grid waits for it and takes what it leaves."""
    one = job(tmp_path / "a", 1.0)
    killed = [sys.executable, "-c", START_AND_DIE, repr(PREFIX), str(one.folder), repr(one.fresh)]
    assert subprocess.run(killed, check=False).returncode == -9
    assert not one.folder.joinpath("report.json").exists()
    with LocalProcesses(PREFIX, 1, time.monotonic) as executor:
        outcome = executor.submit(one).result()
    assert (outcome.error, outcome.seconds) == ("", 0)
    assert ran(tmp_path) == ["fresh"]


@pytest.mark.parametrize("blocked", [set(), {signal.SIGINT}])
def test_leaving_asks_running_commands_to_stop(tmp_path: Path, blocked: set[signal.Signals]) -> None:
    """Ctrl-C must not leave processes behind; SIGINT is what `clocs run` saves itself on.

    A process that blocks SIGINT, as those of some clusters do, would hand that on to its commands.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        stop_a_command(tmp_path)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop_a_command(tmp_path: Path) -> None:
    with LocalProcesses(PREFIX, 1, time.monotonic) as executor:
        executor.submit(job(tmp_path / "long", 60.0))
        executor.submit(job(tmp_path / "never", 60.0))
        while not (tmp_path / "long" / "settings.toml").exists():
            time.sleep(0.02)
        began = time.monotonic()
    assert time.monotonic() - began < 10  # asked, and not only killed in the end
    assert ran(tmp_path) == []
    assert not (tmp_path / "never").exists()
    assert threading.active_count() == 1 or all("job" not in one.name for one in threading.enumerate())


def test_threads_of_a_job_are_limited(tmp_path: Path) -> None:
    """Several jobs with a thread per core each would only get in each other's way."""
    script = (
        "import os, sys, pathlib; f = pathlib.Path(sys.argv[1]); f.mkdir(); "
        "(f / 'report.json').write_text(os.environ['OMP_NUM_THREADS'])"
    )
    with LocalProcesses((sys.executable, "-c", script), 1, time.monotonic, threads=3) as executor:
        executor.submit(job(tmp_path / "a")).result()
    assert (tmp_path / "a" / "report.json").read_text() == "3"
