"""Let one process of a training over two be this one, with another beside it and a guard that acts as torchrun does.

The fault and the kill hit this process. The guard then stops the other, as torchrun would.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from faults.file_faults import operations_seen
from faults.processes import Work

GRACE = 5.0  # seconds that the guard gives a process to stop by itself; torchrun gives 30
_LOOK = 0.05  # seconds between two looks of the guard


def over_two(work: Callable[[Path], Work], rank: int) -> Callable[[Path], Work]:
    """Turn the work of one process into that of two; the one with this rank is disturbed, and the other is not."""

    def begin(folder: Path) -> Work:
        def train() -> int:
            _wait_for_guards(folder)
            port = _free_port()
            guard = os.fork()
            if guard == 0:
                operations_seen()  # disarms the fault
                _guard(lambda: _as_rank(1 - rank, port, work(folder)), os.getppid())
            folder.with_suffix(f".{os.getpid()}.guard").write_text(str(guard))
            code = _as_rank(rank, port, work(folder))
            os.waitpid(guard, 0)
            return code

        return train

    return begin


def _as_rank(rank: int, port: int, work: Work) -> int:
    from clocs_core.cli.processes import own_place

    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    own_place.cache_clear()
    return work()


def _guard(work: Work, disturbed: int) -> None:
    """Start `work`, and end it, or the disturbed process, when the other of them has failed."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = work()
        finally:
            os._exit(code)
    status = _watch(child, disturbed)
    if status is None:  # the disturbed process is gone
        _end(child)
        os.waitpid(child, 0)
    elif status != 0 and os.getppid() == disturbed:
        _end(disturbed, lambda: os.getppid() == disturbed)
    os._exit(0)


def _watch(child: int, disturbed: int) -> int | None:
    """Return the status of the child when it has ended; None when the disturbed process was gone before."""
    while os.getppid() == disturbed:
        number, status = os.waitpid(child, os.WNOHANG)
        if number:
            return status
        time.sleep(_LOOK)
    return None


def _end(number: int, is_there: Callable[[], bool] = lambda: True) -> None:
    """Ask a process to stop, and kill it after the time of grace."""
    _send(number, signal.SIGTERM)
    until = time.monotonic() + GRACE
    while is_there() and _is_alive(number) and time.monotonic() < until:
        time.sleep(_LOOK)
    if is_there():
        _send(number, signal.SIGKILL)


def _send(number: int, sent: signal.Signals) -> None:
    try:
        os.kill(number, sent)
    except ProcessLookupError:
        return


def _is_alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_for_guards(folder: Path) -> None:
    """Wait until the guards of killed processes have ended all that was left."""
    for file in folder.parent.glob(f"{folder.name}.*.guard"):
        disturbed, guard = int(file.suffixes[-2][1:]), int(file.read_text())
        while not _is_alive(disturbed) and _is_alive(guard):
            time.sleep(_LOOK)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
