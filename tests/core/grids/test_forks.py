"""A fork is as good as a new process: its output, exit code, locks and signals, and what happens when others die."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clocs_core.grids.executor import OWN_COMMAND, Job, LocalProcesses
from clocs_core.grids.forks import LOST, Forked, Forks, can_fork

SUPPORT = Path(__file__).parents[2] / "support"
COMMAND = "forked_command:main"
VARIABLES = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), *filter(None, sys.path)])}

pytestmark = pytest.mark.skipif(not can_fork(), reason="forks are used on Linux only")


@pytest.fixture
def forks() -> Iterator[Forks]:
    made = Forks({**VARIABLES, "OMP_NUM_THREADS": "3"}, COMMAND, "")
    yield made
    made.close()


def start(forks: Forks, log: Path, *words: str, locks: tuple[int, ...] = ()) -> Forked:
    with open(log, "ab") as file:
        return forks.start(words, file, locks)


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def test_a_command_prints_into_its_log_and_returns_its_code(forks: Forks, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    assert start(forks, log, "say", "a", "b").wait(60) == 0
    assert sorted(log.read_text().splitlines()) == ["a b 3 ''", "and an error", "before"]
    assert start(forks, log, "leave", "5").wait(60) == 5


def test_a_fork_that_has_lost_the_file_of_signals_runs_its_command(tmp_path: Path) -> None:
    forks = Forks(VARIABLES, COMMAND, "forked_command:forget_file_of_signals")
    try:
        codes = [start(forks, tmp_path / "log", "leave", str(code)).wait(60) for code in (0, 5)]
    finally:
        forks.close()
    assert codes == [0, 5]


def test_a_command_that_is_killed_or_raises_costs_itself_alone(forks: Forks, tmp_path: Path) -> None:
    log = tmp_path / "log"
    beside = start(forks, tmp_path / "other", "sleep", str(tmp_path / "began"), "0.5")
    assert start(forks, log, "die").wait(60) == -signal.SIGKILL
    assert start(forks, log, "raise").wait(60) == 1
    assert log.read_text().rstrip().endswith("IndexError: list index out of range")
    assert beside.wait(60) == 0


def test_commands_run_at_the_same_time(forks: Forks, tmp_path: Path) -> None:
    """Each is there before the first has ended."""
    running = [start(forks, tmp_path / "log", "sleep", str(tmp_path / name), "60") for name in "abc"]
    for name in "abc":
        wait_for(tmp_path / name)
    for one in running:
        one.kill()
    assert [one.wait(60) for one in running] == [-signal.SIGKILL] * 3


def test_an_interrupt_reaches_a_command(forks: Forks, tmp_path: Path) -> None:
    """`clocs run` saves itself on it."""
    running = start(forks, tmp_path / "log", "sleep", str(tmp_path / "began"), "60")
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.05)
    wait_for(tmp_path / "began")
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 7
    running.send_signal(signal.SIGINT)  # it has ended: nothing happens
    assert start(forks, tmp_path / "log", "leave", "0").wait(60) == 0


def test_an_interrupt_that_comes_before_the_command_is_not_lost(forks: Forks, tmp_path: Path) -> None:
    """Nor before the libraries are loaded: a grid that is stopped early must not wait for 60 s."""
    running = [start(forks, tmp_path / "log", "sleep", str(tmp_path / str(number)), "60") for number in range(8)]
    for one in running:
        one.send_signal(signal.SIGINT)
    assert all(one.wait(30) != 0 for one in running)


def test_nothing_is_left_to_close_when_an_interrupt_may_come(tmp_path: Path) -> None:
    """Python warns of a socket that is collected open; an interrupt that comes while it does so is lost."""
    forks = Forks({**VARIABLES, "PYTHONWARNINGS": "always::ResourceWarning"}, COMMAND, "")
    try:
        assert start(forks, tmp_path / "log", "leave", "3").wait(60) == 3
    finally:
        forks.close()
    assert (tmp_path / "log").read_text() == ""


def test_signals_of_a_terminal_leave_the_forking_process_alone(forks: Forks, tmp_path: Path) -> None:
    """They go to all processes of a terminal. It has to tell how its commands ended."""
    assert start(forks, tmp_path / "log", "leave", "0").wait(60) == 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(forks._process.pid, number)
    assert start(forks, tmp_path / "log", "leave", "4").wait(60) == 4


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """`nohup` ignores SIGHUP, so that commands survive their terminal; SIGTERM must stop them all the same."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        forks = Forks(VARIABLES, COMMAND, "")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert start(forks, tmp_path / "log", "signals").wait(60) == 0
    forks.close()
    assert (tmp_path / "log").read_text() == "[True, False]\n"


def test_a_command_holds_its_locks_until_it_ends(forks: Forks, tmp_path: Path) -> None:
    """Also when whoever started it has closed them."""
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    running = start(forks, tmp_path / "log", "sleep", str(tmp_path / "began"), "60", locks=(lock,))
    wait_for(tmp_path / "began")
    os.close(lock)
    again = os.open(tmp_path / "lock", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    running.kill()
    assert running.wait(60) == -signal.SIGKILL
    fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(again)


def test_a_command_whose_grid_was_killed_goes_on(tmp_path: Path) -> None:
    script = (
        "import os, sys, time; from pathlib import Path; from clocs_core.grids.forks import Forks\n"
        f"forks = Forks(dict(os.environ), {COMMAND!r}, '')\n"
        "began = Path(sys.argv[1])\n"
        "forks.start(['sleep', str(began), '1'], open(began.with_suffix('.log'), 'ab'), ())\n"
        "while not began.exists(): time.sleep(0.01)\n"
        "os.kill(os.getpid(), 9)"
    )
    began = tmp_path / "began"
    assert subprocess.run([sys.executable, "-c", script, str(began)], env=VARIABLES, check=False).returncode == -9
    assert not began.with_suffix(".ended").exists()
    wait_for(began.with_suffix(".ended"))


def test_where_the_forking_process_is_killed_its_commands_go_on(forks: Forks, tmp_path: Path) -> None:
    """Their end is seen, their exit code is lost, and no new one is begun."""
    running = start(forks, tmp_path / "log", "sleep", str(tmp_path / "began"), "1")
    wait_for(tmp_path / "began")
    forks._process.kill()
    forks._process.wait()
    with pytest.raises(OSError, match="has ended with -9"):
        start(forks, tmp_path / "log", "leave", "0")
    assert running.wait(60) == LOST
    assert (tmp_path / "began.ended").exists()


def test_a_command_with_too_many_words_is_refused_and_the_next_one_runs(forks: Forks, tmp_path: Path) -> None:
    for length in (2**17, 150_000, 2**20):
        with pytest.raises(OSError, match="too long"):
            start(forks, tmp_path / "log", "say", "x" * length)
    assert start(forks, tmp_path / "log", "say", "x" * 100_000).wait(60) == 0
    assert start(forks, tmp_path / "log", "leave", "0").wait(60) == 0


def test_closing_ends_the_forking_process_and_no_command(tmp_path: Path) -> None:
    forks = Forks(VARIABLES, COMMAND, "")
    start(forks, tmp_path / "log", "sleep", str(tmp_path / "began"), "0.5")
    wait_for(tmp_path / "began")
    forks.close()
    assert forks._process.poll() is not None
    wait_for(tmp_path / "began.ended")


def job(folder: Path, seed: int, data: Path) -> Job:
    words = ("run", "--plugin", "cmsc", "--dataset", "demo", "-o", "patients=20", "--epochs", "1", "-o", "resamples=10")
    fresh = (*words, "--seed", str(seed), "--pictures", "false", "--data-root", str(data), "--out", str(folder))
    return Job(name=folder.name, folder=folder, fresh=fresh, resume=("run", "--resume", str(folder)))


@pytest.mark.slow
def test_jobs_by_forks_have_the_weights_of_jobs_by_processes(tmp_path: Path) -> None:
    """Bit for bit; and where what forks was killed, a process does the job."""
    from safetensors.torch import load_file

    for name, many in (("forks", True), ("processes", False)):
        with LocalProcesses(OWN_COMMAND, 2, time.monotonic, 1, many=many) as executor:
            jobs = [job(tmp_path / name / str(seed), seed, tmp_path / "data") for seed in range(2)]
            assert [one.result().error for one in [executor.submit(each) for each in jobs]] == ["", ""]
            if many:
                assert executor._forks is not None
                executor._forks._process.kill()
                executor._forks._process.wait()
                assert executor.submit(job(tmp_path / "killed", 0, tmp_path / "data")).result().error == ""
    first = load_file(tmp_path / "forks" / "0" / "encoder.safetensors")
    for other in (tmp_path / "processes" / "0", tmp_path / "killed"):
        found = load_file(other / "encoder.safetensors")
        assert all(first[name].equal(found[name]) for name in first | found)
    second = load_file(tmp_path / "forks" / "1" / "encoder.safetensors")
    found = load_file(tmp_path / "processes" / "1" / "encoder.safetensors")
    assert all(second[name].equal(found[name]) for name in second | found)
    assert not all(first[name].equal(second[name]) for name in first)
