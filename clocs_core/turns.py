"""Let several threads of this process take turns, so that each works as if it were alone.

torch's default generators, warnings and the state of many libraries belong to the process. A thread therefore works
only while it has the turn, and finds torch's default generators as it left them. It gives the turn away while it waits
for a device or a disk: that time is most of a training on a GPU, and the other threads use it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    import torch

_mine = threading.local()  # `turns`: those that this thread takes part in


@contextmanager
def waiting() -> Iterator[None]:
    """Give the turn away while the block waits for a device or a disk. It must draw no random numbers of torch's own.

    Does nothing in a thread that takes no turns.
    """
    turns: Turns | None = getattr(_mine, "turns", None)
    if turns is None:
        yield
        return
    turns.give()
    try:
        yield
    finally:
        turns.take()
    turns.heed_stop()


def heed_stop() -> None:
    """Raise KeyboardInterrupt, once in each thread, where the threads that take turns are to stop."""
    turns: Turns | None = getattr(_mine, "turns", None)
    if turns is not None:
        turns.heed_stop()


@attrs.frozen
class _Generators:
    """The state of torch's default generators, on the host and on the GPU."""

    host: torch.Tensor
    device: torch.Generator | None

    @classmethod
    def installed(cls) -> _Generators:
        """Return the present state. That of the GPU is no copy: captured graphs hold on to it."""
        import torch

        device = _device_generator().graphsafe_get_state() if torch.cuda.is_initialized() else None
        return cls(torch.get_rng_state(), device)

    def another(self) -> _Generators:
        """Return a state that shares nothing with this one."""
        import torch

        device = None if self.device is None else torch.Generator(self.device.device).graphsafe_get_state()
        return _Generators(self.host.clone(), device)

    def install(self) -> None:
        """Let torch draw from this state."""
        import torch

        torch.set_rng_state(self.host)
        if self.device is not None:
            _device_generator().graphsafe_set_state(self.device)


def _device_generator() -> torch.Generator:
    import torch

    found: torch.Generator = torch.cuda.default_generators[torch.cuda.current_device()]
    return found


class Turns:
    """Turns that threads take, in the order in which they ask for one.

    Make it, and restore the generators at the end, in a thread that waits meanwhile. CUDA must be initialised before,
    where the threads use it.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._outside = _Generators.installed()
        self._asking: deque[int] = deque()  # numbers of threads
        self._taken = False
        self._changed = threading.Condition()

    @contextmanager
    def taking_part(self) -> Iterator[None]:
        """Let this thread take turns: it has one in the block, wherever it does not wait."""
        _mine.turns, _mine.generators, _mine.told = self, self._outside.another(), False
        self.take()
        try:
            yield
        finally:
            self.give()
            del _mine.turns

    def take(self) -> None:
        """Wait for the turn of this thread, and install its generators."""
        me = threading.get_ident()
        with self._changed:
            self._asking.append(me)
            self._changed.wait_for(lambda: not self._taken and self._asking[0] == me)
            self._asking.popleft()
            self._taken = True
        _mine.generators.install()

    def give(self) -> None:
        """Let the next thread have its turn."""
        _mine.generators = _Generators.installed()
        with self._changed:
            self._taken = False
            self._changed.notify_all()

    def stop(self) -> None:
        """Ask all threads to stop: each raises KeyboardInterrupt when it has next waited, or at its next step."""
        self.stopped = True

    def heed_stop(self) -> None:
        """Raise KeyboardInterrupt in a thread that has not done so, if all are to stop."""
        if self.stopped and not _mine.told:
            _mine.told = True
            raise KeyboardInterrupt

    def restore(self) -> None:
        """Install the generators that were there before. Call it when no thread takes part any more."""
        self._outside.install()
