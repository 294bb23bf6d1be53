"""Let SIGTERM and SIGHUP stop a command as Ctrl-C does: it saves, says how to resume, and ends with 128 + signal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import click

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
