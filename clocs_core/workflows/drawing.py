"""Draw pictures in other processes, while a run on a GPU goes on. A run on a CPU draws them itself: no core is idle.

The twelve pictures of a run take 2.6 s of one core. matplotlib takes a second to import, and holds the interpreter of a
run that keeps a GPU busy. Processes that draw import this module: no torch here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar

import attrs

from clocs_core.turns import waiting
from clocs_core.worker_processes import end_with

if TYPE_CHECKING:
    import torch

P = ParamSpec("P")
T = TypeVar("T")

Drawn: TypeAlias = Callable[[], T]
"""What was begun to draw: a call waits for it and returns it."""

_MOST = 4  # processes: more would not end sooner, since one picture takes a fifth of the time of all


@attrs.frozen(eq=False)
class Drawing:
    """Begins to draw, by `processes`; None draws in this process, when the result is asked for."""

    processes: Executor | None = None

    def begin(self, draw: Callable[P, T], *of: P.args, **named: P.kwargs) -> Drawn[T]:
        """Begin to call `draw`, a function that other processes can import."""
        here = partial(draw, *of, **named)
        if self.processes is None:
            return here
        try:
            return partial(_wait, self.processes.submit(draw, *of, **named), here)
        except Exception:  # the processes were killed, or none can be started
            return here


@contextmanager
def drawing_beside(device: torch.device, wanted: bool = True) -> Iterator[Drawing | None]:
    """Give what draws the pictures of a run on this device; None where none are wanted."""
    if device.type == "cpu" or not wanted:
        yield Drawing() if wanted else None
        return
    with _PROCESSES.lent() as processes:
        yield Drawing(processes)


@attrs.define(eq=False)
class _Processes:
    """The processes that draw for all runs of this process. They end with the last of these runs."""

    _lock: Lock = attrs.field(factory=Lock, init=False)
    _runs: int = attrs.field(default=0, init=False)
    _pool: Executor | None = attrs.field(default=None, init=False)

    @contextmanager
    def lent(self) -> Iterator[Executor | None]:
        """Lend the processes, which start with the first picture; None on a machine with one core."""
        with self._lock:
            self._runs += 1
            self._pool = self._pool or _make_pool()
            pool = self._pool
        try:
            yield pool
        finally:
            with self._lock:
                self._runs -= 1
                if self._pool is not None and not self._runs:
                    self._pool.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]  # loky's own
                    self._pool = None


_PROCESSES = _Processes()


def _make_pool() -> Executor | None:
    count = min(_MOST, (os.cpu_count() or 1) // 2)
    if not count:
        return None
    from loky import ProcessPoolExecutor  # as for reading recordings, see data/shards.py

    pool: Executor = ProcessPoolExecutor(count, initializer=_begin_worker, initargs=(os.getpid(),))
    return pool


def _begin_worker(parent: int) -> None:
    """Import what draws before the first picture is asked for, fonts among it."""
    end_with(parent)
    from clocs_core.report import class_figures, figures, traces  # noqa: F401
    from clocs_core.report.sheet import label, sheet, to_png

    figure, (axes,) = sheet(1, 1, 2, 2)
    label(axes, "title", "x", "y")
    to_png(figure)


def _wait(begun: Future[T], here: Callable[[], T]) -> T:
    """Wait for another process to draw. Draw here if it failed or was killed: a mistake in drawing is raised here."""
    with suppress(Exception), waiting():
        return begun.result()
    return here()
