"""A command for tests of `clocs_core.grids.forks`: its first word says what it does."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path


def main(words: list[str]) -> int:
    """Do what the first word says with the others."""
    found = _DO[words[0]](*words[1:])
    return found if isinstance(found, int) else 0


def forget_file_of_signals() -> None:
    """Let every fork begin without the file that signals are written to, as one of Python 3.12.3 with CUDA did."""
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1) and None)


def _say(*words: str) -> None:
    sys.stdout.write(f"{' '.join(words)} {os.environ.get('OMP_NUM_THREADS')} {sys.stdin.read()!r}\n")
    sys.stderr.write("and an error\n")


def _sleep(began: str, seconds: str) -> int:
    """Write the file when it has begun. Return 7 where an interrupt comes.

    It sleeps in short steps: an interrupt that comes just before the system call is raised when the call returns.
    """
    until = time.monotonic() + float(seconds)
    try:
        Path(began).write_text(str(os.getpid()))
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
    except KeyboardInterrupt:
        return 7
    Path(began).with_suffix(".ended").touch()
    return 0


def _tell_signals() -> None:
    ignored = [signal.getsignal(number) == signal.SIG_IGN for number in (signal.SIGHUP, signal.SIGTERM)]
    sys.stdout.write(f"{ignored}\n")


_DO: dict[str, Callable[..., int | None]] = {
    "say": _say,
    "sleep": _sleep,
    "signals": _tell_signals,
    "leave": lambda code: int(code),
    "raise": lambda: [][0],
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
}
