"""The processes that train together: divide a batch among them, gather and add up tensors.

Nothing here reads the environment or chooses a device. `Wire` is all that is asked of the connection, so that torch's
gloo and NCCL serve alike, and threads in tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any, Protocol

import attrs
import torch
from torch import Tensor

from clocs_core.errors import LostProcess


class Wire(Protocol):
    """Connects processes. Each method is called by all of them, in the same order."""

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""

    @property
    def count(self) -> int:
        """Number of processes."""

    def gather(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all processes, which have one shape and type, as (process, ...)."""

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all processes, with the same bits in each."""

    def begin_sum(self, tensor: Tensor) -> Callable[[], None]:
        """Begin to replace a tensor by its sum, as `add_up` does. Return a function that waits for it."""

    def pass_on(self, tensor: Tensor) -> Callable[[], Tensor]:
        """Begin to send a tensor to the next process. Return a function that waits for that of the one before."""


@attrs.frozen(eq=False)
class TorchWire:
    """Connects by a process group of torch; None is the default one."""

    rank: int
    count: int
    group: Any = None

    def gather(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all processes, in one piece: torch copies lists of tensors once more.

        Of a group of one, the result is the tensor itself: a copy takes 1 % of a step of 256 on an H200.
        """
        sent = tensor.flatten()
        found = sent if self.count == 1 else tensor.new_empty(self.count * tensor.numel())
        with _naming_losses():
            _gather_in_one_piece()(found, sent, group=self.group)
        return found.view(self.count, *tensor.shape)

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum."""
        with _naming_losses():
            torch.distributed.all_reduce(tensor, group=self.group)

    def begin_sum(self, tensor: Tensor) -> Callable[[], None]:
        """Begin to replace a tensor by its sum."""
        with _naming_losses():
            begun = torch.distributed.all_reduce(tensor, group=self.group, async_op=True)

        def wait() -> None:
            with _naming_losses():
                begun.wait()

        return wait

    def pass_on(self, tensor: Tensor) -> Callable[[], Tensor]:
        """Begin to send a tensor to the next process."""
        got, after, before = torch.empty_like(tensor), (self.rank + 1) % self.count, (self.rank - 1) % self.count
        ways = (torch.distributed.isend, tensor, after), (torch.distributed.irecv, got, before)
        with _naming_losses():
            begun = torch.distributed.batch_isend_irecv(
                [torch.distributed.P2POp(way, sent, peer, self.group) for way, sent, peer in ways]
            )

        def wait() -> Tensor:
            with _naming_losses():
                for one in begun:
                    one.wait()
            return got

        return wait


def _gather_in_one_piece() -> Callable[..., object]:
    """Return torch's function that gathers into one tensor: torch 2.13 warns of its old name."""
    found: Callable[..., object] = (
        getattr(torch.distributed, "all_gather_single", None) or torch.distributed.all_gather_into_tensor
    )
    return found


@contextmanager
def _naming_losses() -> Iterator[None]:
    """Raise LostProcess where torch says that a connection is closed or does not answer."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as problem:
        raise LostProcess(
            "Another process of this training ended, so this one stops too. Look at what that process says. "
            "Training is saved after every epoch: `pretrain(..., out='RUN')` goes on, with any number of processes."
        ) from problem


@attrs.frozen(eq=False)
class Group:
    """All processes of a training. Methods are called by all of them, in the same order."""

    wire: Wire

    @property
    def rank(self) -> int:
        """Number of this process, from 0. Process 0 writes, prints and evaluates."""
        return self.wire.rank

    @property
    def count(self) -> int:
        """Number of processes."""
        return self.wire.count

    def divide(self, instances: int) -> Part:
        """Divide a batch in its order; the first processes get one instance more where it does not divide evenly."""
        least, more = divmod(instances, self.count)
        return Part(self, tuple(least + (number < more) for number in range(self.count)))

    def divide_blocks(self, instances: int, block: int) -> Part:
        """Divide instances in blocks of one size, in their order; the last block may be smaller."""
        blocks = accumulate(self.divide(-(-instances // block)).sizes, initial=0)
        ends = (min(block * done, instances) for done in blocks)
        return Part(self, tuple(after - before for before, after in pairwise(ends)))

    def sum(self, tensor: Tensor) -> Tensor:
        """Add up tensors of one shape over all processes. Has no gradient."""
        total = tensor.detach().clone(memory_format=torch.contiguous_format)
        self.wire.add_up(total)
        return total

    def join(self, tensor: Tensor, dim: int = 0) -> Tensor:
        """Join tensors that may differ in length along `dim`. Has no gradient. Waits for the device."""
        length = torch.tensor([tensor.shape[dim]], device=tensor.device)
        sizes = self.wire.gather(length).flatten().tolist()  # sync point
        return Part(self, tuple(sizes)).gather(tensor, dim)

    def texts(self, text: str, device: torch.device) -> tuple[str, ...]:
        """Return the text of every process. device: one that the connection can send from."""
        own = torch.tensor(list(text.encode()), dtype=torch.uint8).to(device)
        sizes = self.join(torch.tensor([len(own)], device=device)).tolist()
        return tuple(bytes(part.tolist()).decode() for part in self.join(own).split(sizes))

    def wait(self, device: torch.device) -> None:
        """Wait until all processes have come here."""
        self.wire.gather(torch.zeros(1, device=device))[0].item()  # sync point


@attrs.frozen(eq=False)
class Part:
    """The processes and the instances that each has of one batch: the `Ranks` of losses and objectives.

    patient: the patients of the whole batch, where every process knows them, so that nobody has to send them.
    """

    group: Group
    sizes: tuple[int, ...]
    patient: Tensor | None = None

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return self.group.rank

    @property
    def own(self) -> slice:
        """Place of the own instances in the whole batch."""
        return self._place(self.rank)

    def _place(self, rank: int) -> slice:
        before = sum(self.sizes[:rank])
        return slice(before, before + self.sizes[rank])

    @property
    def whole(self) -> int:
        """Instances of the whole batch."""
        return sum(self.sizes)

    def patients(self, own: Tensor) -> Tensor:
        """Return the patients of the whole batch."""
        return self.gather(own) if self.patient is None else self.patient

    def gather(self, tensor: Tensor, dim: int = 0) -> Tensor:
        """Join the tensors of all processes along `dim`. Has no gradient.

        Connections send equal lengths, so shorter parts are filled up with zeros.
        """
        parts = self.group.wire.gather(self._filled_up(tensor.detach(), dim))  # (process, ..., instance, ...)
        if min(self.sizes) == max(self.sizes):
            return parts.movedim(0, dim).flatten(dim, dim + 1)  # one copy, or none where `dim` is 0
        return torch.cat([part.narrow(dim, 0, size) for part, size in zip(parts, self.sizes, strict=True)], dim)

    def around(self, tensor: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Yield the place and the rows of each process that has any, the own first. Has no gradient."""
        held = self._filled_up(tensor.detach(), 0)
        for turn in range(self.group.count):
            owner = (self.rank - turn) % self.group.count
            coming = self.group.wire.pass_on(held) if turn + 1 < self.group.count else None
            if self.sizes[owner]:
                yield self._place(owner), held[: self.sizes[owner]]
            if coming is not None:
                held = coming()

    def _filled_up(self, tensor: Tensor, dim: int) -> Tensor:
        """Return a tensor with zeros behind its instances along `dim`, up to the length of the longest part."""
        missing = max(self.sizes) - tensor.shape[dim]
        if not missing:
            return tensor.contiguous()
        return torch.cat([tensor, tensor.new_zeros((*tensor.shape[:dim], missing, *tensor.shape[dim + 1 :]))], dim)

    def gather_with_gradient(self, tensor: Tensor, dim: int = 0) -> Tensor:
        """Join as `gather` does. The backward pass adds up the gradients of all processes."""
        joined: Tensor = _Gather.apply(tensor, self, dim)  # type: ignore[no-untyped-call]  # torch has no types for it
        return joined

    def sum(self, tensor: Tensor) -> Tensor:
        """Add up tensors of one shape over all processes. Has no gradient."""
        return self.group.sum(tensor)

    def share_of_mean(self, mean: Tensor) -> Tensor:
        """Turn a mean over the own instances into the share of the mean over all."""
        own = self.sizes[self.rank]
        return mean * (own / self.whole) if own else mean.nan_to_num() * 0


class _Gather(torch.autograd.Function):
    """Joins forwards; backwards adds up what all processes want of the own instances."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, part: Part, dim: int) -> Tensor:
        ctx.part, ctx.dim = part, dim
        return part.gather(tensor, dim)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
        own = ctx.part.own
        return ctx.part.sum(outer).narrow(ctx.dim, own.start, own.stop - own.start), None, None
