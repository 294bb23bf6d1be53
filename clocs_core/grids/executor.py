"""Run jobs as processes of this machine, and find executors by name.

An executor first takes the lock of a job, looks at its folder again, and then starts, resumes or skips the job. The
lock is an open file that the command inherits, so the command holds it as long as it lives, even if its grid was
killed. So no two processes ever work on one folder, and the next grid waits for such a command instead of repeating it.

Commands of clocs itself are forks of a process that has loaded the libraries: forks.py.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any, Protocol

from clocs_core.contracts.jobs import Executor, ExecutorOffer, Job, Outcome, Workplace
from clocs_core.contracts.offers import NoOptions
from clocs_core.errors import SettingsError
from clocs_core.grids.forks import Forks, can_fork
from clocs_core.plugins.catalogue import Catalogue, Offered, Shelf
from clocs_core.plugins.host import Plugin
from clocs_core.settings.options import field_types, from_text, structure

OWN_COMMAND = (sys.executable, "-m", "clocs_core")
"""The words before those of a job, where nobody asked for others."""

_TAIL = 2000  # characters of a log in which the error stands
_PATIENCE = 20.0  # seconds for a command that is asked to stop, before it is killed
_POLL = 0.2  # seconds between two looks at a lock that another process holds


def find_executor(catalogue: Catalogue, name: str) -> Offered[ExecutorOffer]:
    """Return an executor by its name. Raises UnknownName, which lists those that there are."""
    own = Offered(LOCAL, Plugin("clocs", "clocs", "itself", ModuleType("clocs")))
    return Shelf(ExecutorOffer, (own, *catalogue.executors.offered), catalogue.executors.broken).get(name)


def read_options(offer: ExecutorOffer, given: Sequence[str]) -> Any:
    """Read the options of an executor, typed as NAME=VALUE. Raises SettingsError for one that it does not have."""
    types, values = field_types(offer.options), dict[str, object]()
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in types:
            known = ", ".join(types) or "none"
            raise SettingsError(
                f"The engine {offer.name!r} has no option {text!r}. Its options, as NAME=VALUE: {known}."
            )
        values[name] = from_text(types[name], value)
    return structure(offer.options, values, offer.name)


def run_job(job: Job, workplace: Workplace) -> Outcome:
    """Run a job as a process of this machine, under its lock, and wait for it. For executors that plugins offer.

    A job that another process works on is waited for; one that is done is not repeated. KeyboardInterrupt asks the
    process to save itself and stop.
    """
    with LocalProcesses(workplace.command, 1, time.monotonic, workplace.threads, workplace.say) as processes:
        running = processes.submit(job)
        while not wait([running], timeout=_POLL).done:
            pass  # an interrupt that is no signal of the system is seen between two waits only
        return running.result()


class Process(Protocol):
    """A command that runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, negative for a signal. Raise subprocess.TimeoutExpired after so many seconds."""

    def send_signal(self, sig: int) -> None:
        """Send a signal to the command, unless it has ended."""

    def kill(self) -> None:
        """Kill the command."""


class LocalProcesses:
    """Jobs as processes of this machine, `at_once` of them. Jobs that wait go in the order in which they came.

    prefix: what stands before a command, such as `python -m clocs_core`. say: is told, once a job, of a command of an
    earlier grid that is waited for; called from the threads that wait. many: whether jobs are so many that libraries
    are worth loading before the first, where the prefix is that of this program.
    """

    def __init__(
        self,
        prefix: Sequence[str],
        at_once: int,
        clock: Callable[[], float],
        threads: int | None = None,
        say: Callable[[str], None] = lambda text: None,
        many: bool = False,
    ) -> None:
        self.at_once = at_once
        self._prefix, self._clock, self._say = tuple(prefix), clock, say
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="job", initializer=_let_interrupts_pass)
        self._running: set[Process] = set()
        self._guard = threading.Lock()
        self._stopped = threading.Event()
        # Several processes, each with a thread per core, only get in each other's way.
        self._environment = {**os.environ, **({"OMP_NUM_THREADS": str(threads)} if threads else {})}
        self._can_fork = many and can_fork() and self._prefix == OWN_COMMAND
        self._forks: Forks | None = None

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
        if self._forks is not None:
            self._forks.close()

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
        with ExitStack() as stack:
            locks = [stack.enter_context(_opened(path)) for path in job.locks]
            if not all(self._hold(lock, job) for lock in locks):
                return Outcome(error="Stopped while another process worked on it.")
            command = job.command()
            if command is None:
                return Outcome()
            said_before = job.log.stat().st_size if job.log.exists() else 0  # bytes, of earlier attempts
            began = self._clock()
            code = self._wait(command, job.log, locks)
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

    def _wait(self, command: tuple[str, ...], log: Path, locks: Sequence[int]) -> int:
        with open(log, "ab") as file:
            with self._guard:
                if self._stopped.is_set():
                    return -signal.SIGINT
                process = self._start(command, file, locks)
                self._running.add(process)
            try:
                return process.wait()
            finally:
                with self._guard:
                    self._running.discard(process)

    def _start(self, command: Sequence[str], log: IO[bytes], locks: Sequence[int]) -> Process:
        """Start a command that holds the locks too: it may outlive this process."""
        if self._can_fork:
            self._forks = self._forks or Forks(self._environment)
            with suppress(OSError):  # somebody killed what forks: a process of its own does as well
                return self._forks.start(command, log, locks)
        return subprocess.Popen(
            [*self._prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=self._environment,
            pass_fds=locks,
        )


def _let_interrupts_pass() -> None:
    """Unblock SIGINT in this thread: commands that it starts inherit what it blocks, and could not be stopped.

    The processes of some clusters block SIGINT, so that Ctrl-C in a terminal leaves them alone.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _end(process: Process) -> None:
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


def _open_local(options: NoOptions, workplace: Workplace) -> Executor:
    return LocalProcesses(
        workplace.command, workplace.at_once, time.monotonic, workplace.threads, workplace.say, many=True
    )


LOCAL = ExecutorOffer(name="local", summary="Processes of this machine, which share its GPUs.", open=_open_local)
"""The executor of core."""
