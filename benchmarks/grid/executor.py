"""Run jobs. A grid hands a Job to an Executor and gets its Outcome; it does not know about processes or clusters.

A job is a command line and the folder that it fills. An executor first takes the job's lock, looks at the
folder again, and then starts, resumes or skips the job. The lock is an open file that the command inherits, so the
command holds it as long as it lives, even if its grid was killed. So no two processes ever work on one folder, and the
next grid waits for such a command instead of repeating it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol

import attrs

from clocs_core.artifacts.run_folder import RunFolder

_TAIL = 2000  # characters of a log in which the error stands
_PATIENCE = 20.0  # seconds for a command that is asked to stop, before it is killed
_POLL = 0.2  # seconds between two looks at a lock that another process holds


@attrs.frozen(kw_only=True)
class Job:
    """A command of clocs: `fresh` fills the folder, `resume` goes on with one that has been begun."""

    name: str
    folder: Path
    fresh: tuple[str, ...]
    resume: tuple[str, ...]

    @property
    def log(self) -> Path:
        """The file with the output of the command, beside its folder."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def lock(self) -> Path:
        """The lock of the process that works on the folder."""
        return self.folder.with_name(f".{self.folder.name}.job")

    def command(self) -> tuple[str, ...] | None:
        """Choose the command that remains to be run; None where the report is there. Ask while holding the lock."""
        folder = RunFolder(self.folder)
        if folder.report.exists():
            return None
        return self.resume if folder.settings.exists() else self.fresh


@attrs.frozen
class Outcome:
    """How a job ended: with its folder filled, or with an error. seconds: of the command; 0 if none was needed."""

    error: str = ""
    seconds: float = 0.0


class Executor(Protocol):
    """Runs jobs somewhere, several at once, in any order. Used as a context manager: leaving it stops what still runs.

    at_once: how many jobs the grid submits before the first of them has ended.
    """

    @property
    def at_once(self) -> int:
        """How many jobs may be submitted before the first of them has ended."""

    def submit(self, job: Job) -> Future[Outcome]:
        """Run a job when there is room for it. The future ends with an Outcome, whatever became of the job."""

    def __enter__(self) -> Executor: ...

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class LocalProcesses:
    """Jobs as processes of this machine, `at_once` of them. Jobs that wait go in the order in which they came.

    prefix: what stands before a command, such as `python -m clocs_core`. say: is told, once a job, of a command of an
    earlier grid that is waited for; called from the threads that wait.
    """

    def __init__(
        self,
        prefix: Sequence[str],
        at_once: int,
        clock: Callable[[], float],
        threads: int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.at_once = at_once
        self._prefix, self._clock, self._say = tuple(prefix), clock, say
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="job")
        self._running: set[subprocess.Popen[bytes]] = set()
        self._guard = threading.Lock()
        self._stopped = threading.Event()
        # Several processes, each with a thread per core, only get in each other's way.
        self._environment = {**os.environ, **({"OMP_NUM_THREADS": str(threads)} if threads else {})}

    def __enter__(self) -> LocalProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._guard:
            self._stopped.set()
            running = tuple(self._running)
        for process in running:
            process.send_signal(signal.SIGINT)  # what `clocs run` saves itself on
        for process in running:
            _end(process)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, job: Job) -> Future[Outcome]:
        """Run a job when one of the places is free."""
        return self._pool.submit(self._run, job)

    def _run(self, job: Job) -> Outcome:
        try:
            return self._run_alone(job)
        except OSError as problem:  # no such program, a full disk: the other jobs may fare better
            return Outcome(error=f"The system refused {job.name}: {problem}")

    def _run_alone(self, job: Job) -> Outcome:
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        with _opened(job.lock) as lock:
            if not self._hold(lock, job):
                return Outcome(error="Stopped while another process worked on it.")
            command = job.command()
            if command is None:
                return Outcome()
            said_before = job.log.stat().st_size if job.log.exists() else 0  # bytes, of earlier attempts
            began = self._clock()
            code = self._wait(command, job.log, lock)
            seconds = self._clock() - began
            if job.command() is None:
                return Outcome(seconds=seconds)
            return Outcome(error=_error(code, job.log, said_before), seconds=seconds)

    def _hold(self, lock: int, job: Job) -> bool:
        """Wait until nobody else works on this job, and keep others away. False where the grid is stopped meanwhile."""
        told = False
        while not _take(lock):
            if not told:
                self._say(f"waiting for {job.name}: another process works on it and holds {job.lock}")
                told = True
            if self._stopped.wait(_POLL):
                return False
        return True

    def _wait(self, command: tuple[str, ...], log: Path, lock: int) -> int:
        with open(log, "ab") as file:
            with self._guard:
                if self._stopped.is_set():
                    return -signal.SIGINT
                process = subprocess.Popen(
                    [*self._prefix, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env=self._environment,
                    pass_fds=(lock,),  # the command holds the lock too: it may outlive this process
                )
                self._running.add(process)
            try:
                return process.wait()
            finally:
                with self._guard:
                    self._running.discard(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open the file of a lock. The system releases the lock when the last process that has the file open ends."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield file
    finally:
        os.close(file)


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _error(code: int, log: Path, said_before: int) -> str:
    """Describe why a command left no report: its last words, or how it ended.

    said_before: how many bytes of the log are of earlier attempts, whose errors are not this one's.
    """
    said = log.read_bytes()[said_before:][-_TAIL:].decode(errors="replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    complaint = next((line for line in reversed(lines) if line.startswith("Error:")), lines[-1] if lines else "")
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return f"{complaint or 'it said nothing'} ({how}; {log.name})"
