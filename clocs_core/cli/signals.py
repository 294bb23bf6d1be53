"""Let SIGTERM and SIGHUP stop a command as Ctrl-C does: it saves, says how to resume, and ends with 128 + signal."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import click

_LOOK = 1.0  # seconds between two looks at the parent
_WORDS = {"SIGINT": "Interrupted.", "SIGTERM": "Terminated.", "SIGHUP": "The terminal was closed."}


class Stopped(KeyboardInterrupt):
    """A signal that asks this process to end. Whatever catches Ctrl-C catches it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def heed_signals() -> Iterator[list[int]]:
    """Raise Stopped in the main thread for SIGTERM and SIGHUP; yield the list of those that came.

    A second signal ends the process at once. A signal that is ignored or handled already is left alone: `nohup` ignores
    SIGHUP, so that a command survives its terminal.
    """
    came: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        signal.signal(number, signal.SIG_DFL)
        raise Stopped(number)

    heeded = []
    if threading.current_thread() is threading.main_thread():
        known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has one
        heeded = [number for number in known if signal.getsignal(number) == signal.SIG_DFL]
    for number in heeded:
        signal.signal(number, stop)
    try:
        yield came
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)


def end_after_sigterm(seconds: float) -> None:
    """End this process so many seconds after SIGTERM, even if its main thread never returns to Python.

    Python runs handlers in the main thread, between two of its own instructions, so a call that stays in C++ delays
    them for ever. The number of the signal is written to a pipe at once, where a thread waits for it. Does nothing
    outside of the main thread, which alone has signals, and on Windows, which has no SIGTERM to send.
    """
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def watch() -> None:
        while os.read(read, 1)[0] != signal.SIGTERM:
            pass
        time.sleep(seconds)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def end_with_parent() -> None:
    """Send this process SIGTERM when the process that started it has ended: nobody else would stop it then.

    Does nothing on Windows, where a process keeps the number of its parent.
    """
    if os.name != "posix":
        return
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def say_stopped(problem: BaseException, quietly: bool = False) -> int:
    """Print what the stopped command says, or the name of the signal; return the exit code. quietly: print nothing."""
    ended = isinstance(problem, click.Abort)  # then click has ended the line already
    stop = problem.__cause__ if ended and problem.__cause__ else problem
    number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
    text = "\n".join(getattr(stop, "__notes__", ())) or _WORDS[signal.Signals(number).name]
    with suppress(OSError):  # the terminal may be gone
        if not quietly:
            click.echo(text if ended else f"\n{text}", err=True)
    return 128 + int(number)
