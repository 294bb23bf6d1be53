"""Start commands of clocs as forks of one process that has loaded its libraries: 20 ms each, not seconds.

Loading torch and the rest takes 4 s of a core, which is most of a small evaluation. A grid of a thousand jobs loads
them once. The process does nothing else: it computes nothing and starts no thread, and CUDA begins in the forks. So a
fork begins in the state of a new process. It also inherits the same from the grid: locks, the log, and the signals that
are ignored. It lives on if its grid is killed.

The two sides talk by one socket that keeps messages apart, in JSON. A grid sends the words of a command with its open
files, or a signal for one; the process answers with the exit code of each. It ends when the grid has closed the socket.

Not the fork server of multiprocessing: it sends pickles, imports the main script again in every fork, and has one
server for the whole process, with the environment of its first use.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from itertools import count
from threading import Lock, Thread
from typing import IO, Any

import attrs

LOST = 255
"""Exit code of a command whose own was lost: somebody killed the process that forks."""

_MESSAGE = 2**17  # bytes at most, below what Linux passes on at once; the words of 64 runs are half as long
_OPEN_FILES = 130  # at most: the log, and the locks of 64 runs
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def can_fork() -> bool:
    """Return whether forks are safe here: libraries of macOS start threads when they are loaded."""
    return sys.platform == "linux"


@attrs.frozen(eq=False)
class Forked:
    """A command that runs. It has the methods of a `subprocess.Popen` that a grid needs."""

    number: int
    code: Future[int]
    forks: Forks

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, negative for a signal. Raise subprocess.TimeoutExpired after so many seconds."""
        try:
            return self.code.result(timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired("clocs", timeout or 0.0) from None

    def send_signal(self, number: int) -> None:
        """Send a signal to the command, unless it has ended."""
        with suppress(OSError):
            self.forks.tell({"to": self.number, "signal": int(number)})

    def kill(self) -> None:
        """Kill the command."""
        self.send_signal(signal.SIGKILL)


class Forks:
    """A process that forks for each command.

    environment: variables of all commands. function: what a fork calls with the words of its command, as module:name.
    load: called once, before the first fork, as module:name; "": nothing.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        function: str = "clocs_core.cli:main",
        load: str = "clocs_core.grids.job_libraries:load",
    ) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._running: dict[int, Future[int]] = {}
        self._numbers, self._guard = count(), Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "clocs_core.grids.forks", str(theirs.fileno()), function, load],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                pass_fds=(theirs.fileno(),),
            )
        Thread(target=self._listen, name="forks", daemon=True).start()

    def close(self) -> None:
        """End the process, and not what it has started."""
        with suppress(OSError):  # closed already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._process.kill()  # it may be loading libraries, and would see the end of the socket seconds later
        self._process.wait()

    def start(self, words: Sequence[str], log: IO[bytes], locks: Sequence[int]) -> Forked:
        """Start a command. Raise OSError where that is not possible: the process is gone, or the words are too long.

        log: takes what the command prints. locks: open files that the command inherits.
        """
        if self._process.poll() is not None:
            raise ChildProcessError(f"the process that forks has ended with {self._process.returncode}")
        code = Future[int]()
        with self._guard:
            number = next(self._numbers)
            self._running[number] = code
        try:
            self.tell({"to": number, "words": list(words)}, (log.fileno(), *locks))
        except OSError:
            self._end(number, LOST)
            raise
        return Forked(number, code, self)

    def tell(self, message: Mapping[str, object], files: Sequence[int] = ()) -> None:
        """Send a message, with open files. Raise OSError where nobody is there to read it, or where it is too long."""
        text = json.dumps(message).encode()
        if len(text) > _MESSAGE:
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
        socket.send_fds(self._socket, [text], files)

    def _listen(self) -> None:
        """Note the exit codes that come. Forks hold the socket open: its end comes when all of them have ended."""
        with self._socket, suppress(OSError):
            while text := self._socket.recv(_MESSAGE):
                message = json.loads(text)
                self._end(message["of"], message["code"])
        for number in tuple(self._running):
            self._end(number, LOST)

    def _end(self, number: int, code: int) -> None:
        with self._guard:
            future = self._running.pop(number, None)
        if future is not None:
            future.set_result(code)


def serve(grid: socket.socket) -> list[str] | None:
    """Fork for each command. Return its words in the fork, and None in the first process, when the grid has ended."""
    handlers = {number: signal.getsignal(number) for number in _STOPS}
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal: the grid decides
    wake, wakes = _wake_when_a_fork_ends()
    running: dict[int, int] = {}  # numbers of commands, by process
    with selectors.DefaultSelector() as events:
        for one in (grid, wake):
            events.register(one, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in events.select()}
            if wake in ready:
                wake.recv(4096)
            _report_ended(running, grid)
            if grid not in ready:
                continue
            text, files, _, _ = socket.recv_fds(grid, _MESSAGE, _OPEN_FILES)
            if not text:
                return None
            message = json.loads(text)
            if "words" in message:
                process = _fork(files, handlers, (wake, wakes))
                if not process:
                    return list(message["words"])
                running[process] = message["to"]
                continue
            for process, command in running.items():  # not reported yet, so no other process has its number
                if command == message["to"]:
                    os.kill(process, message["signal"])


def _wake_when_a_fork_ends() -> tuple[socket.socket, socket.socket]:
    """Return a socket that can be read whenever a fork has ended, and its other end, which a signal writes to."""
    reads, writes = socket.socketpair()
    for end in (reads, writes):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler of its own, Python writes nothing
    signal.set_wakeup_fd(writes.fileno(), warn_on_full_buffer=False)
    return reads, writes


def _report_ended(running: dict[int, int], grid: socket.socket) -> None:
    """Tell the grid which commands have ended."""
    while running:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        code = os.waitstatus_to_exitcode(status)
        grid.send(json.dumps({"of": running.pop(process), "code": code}).encode())


def _fork(files: Sequence[int], handlers: Mapping[signal.Signals, Any], not_its_own: Sequence[socket.socket]) -> int:
    """Fork. Return 0 in the fork, which has the open files of its command, and its process number in the other.

    A signal for the fork that comes before it has its own handlers waits for them. not_its_own: closed in the fork
    before that: Python writes a warning for a socket that is collected while it is open, and an interrupt that comes
    meanwhile is lost without a word (6 of 1,000, where it came in the first 50 ms).
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    process = os.fork()
    if process:
        for file in files:
            os.close(file)
    else:
        for one in not_its_own:
            with suppress(OSError):
                one.close()
        _become_command(files[0], handlers)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    return process


def _become_command(log: int, handlers: Mapping[signal.Signals, Any]) -> None:
    """Print into the log, and take signals as a new process does."""
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    signal.set_wakeup_fd(-1)  # what it returns cannot be relied on in a fork: not with Python 3.12.3 and CUDA's torch
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def main(file: int, function: str, load: str) -> int:
    """Load libraries, then fork for each command that a grid sends. Return the exit code of this process."""
    with socket.socket(fileno=file) as grid:
        grid.set_inheritable(False)  # forks hold it until they end, and no process that they start does
        if load:
            _find(load)()
        run = _find(function)
        gc.freeze()  # or a fork that looks for garbage would copy the memory of all modules
        words = serve(grid)
        return 0 if words is None else run(words)


def _find(function: str) -> Callable[..., Any]:
    """Import a function that is given as module:name."""
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
