"""Threads of this process as ranks: a quick stand-in for processes that are connected by torch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import attrs
import torch
from torch import Tensor

from clocs_core.train.ranks import Group

Result = TypeVar("Result")


@attrs.frozen(eq=False)
class Meeting:
    """The place where threads exchange tensors. sent: bytes that each handed over, in order."""

    count: int
    barrier: threading.Barrier
    held: dict[int, Tensor] = attrs.field(factory=dict)
    sent: list[tuple[int, str, int]] = attrs.field(factory=list)


@attrs.frozen(eq=False)
class ThreadWire:
    """Connects threads."""

    rank: int
    meeting: Meeting

    @property
    def count(self) -> int:
        """Number of threads."""
        return self.meeting.count

    def gather(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all threads, as (thread, ...)."""
        return torch.stack(self._exchange("gather", tensor))

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all threads."""
        total = torch.stack(self._exchange("sum", tensor)).sum(0)
        tensor.copy_(total)

    def begin_sum(self, tensor: Tensor) -> Callable[[], None]:
        """Sum when it is waited for: threads have no wire that works beside them."""
        return lambda: self.add_up(tensor)

    def pass_on(self, tensor: Tensor) -> Callable[[], Tensor]:
        """Send a tensor to the next thread."""
        got = self._exchange("pass on", tensor)[self.rank - 1]
        return lambda: got

    def _exchange(self, kind: str, tensor: Tensor) -> list[Tensor]:
        assert tensor.is_contiguous()
        assert not tensor.requires_grad
        self.meeting.sent.append((self.rank, kind, tensor.nbytes))
        self.meeting.held[self.rank] = tensor.detach().clone()
        self.meeting.barrier.wait()
        parts = [self.meeting.held[rank] for rank in range(self.count)]
        assert len({(part.shape, part.dtype) for part in parts}) == 1, "ranks send tensors of different shapes"
        found = [part.clone() for part in parts]
        self.meeting.barrier.wait()
        return found


def on_ranks(count: int, work: Callable[[Group], Result]) -> list[Result]:
    """Run `work` in as many threads, each with its group; return what each gives, or raise the first error."""
    return on_meeting(new_meeting(count), work)


def new_meeting(count: int) -> Meeting:
    """Return a meeting for so many threads, which waits for at most 30 s."""
    return Meeting(count, threading.Barrier(count, timeout=30))


def on_meeting(meeting: Meeting, work: Callable[[Group], Result]) -> list[Result]:
    """Run `work` as `on_ranks` does, at a meeting that the caller can look at afterwards."""
    problems: list[BaseException] = []

    def one(rank: int) -> Result:
        try:
            return work(Group(ThreadWire(rank, meeting)))
        except threading.BrokenBarrierError:
            raise
        except BaseException as problem:
            problems.append(problem)
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(meeting.count) as pool:
        futures = [pool.submit(one, rank) for rank in range(meeting.count)]
    if problems:
        raise problems[0]
    return [future.result() for future in futures]
