"""Add up the gradients of weights over all processes, bucket by bucket, while the backward pass computes the others.

The last weights of a network get their gradients first. As soon as a bucket of them is complete, its sum begins on the
wire, and the backward pass goes on with the layers before. All processes send their buckets in one order, whatever is
complete first in each, since messages of a connection are paired by their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import attrs
import torch
from torch import Tensor

from clocs_core.train.ranks import Group, Wire

BUCKET = 2**20
"""Weights of a message, at least: 4 MB in float32. Smaller ones would wait for the wire, larger for the network."""


@contextmanager
def summing_gradients(group: Group, weights: Iterable[Tensor]) -> Iterator[None]:
    """Replace the gradients that one backward pass in the block computes by their sums over all processes.

    A weight without a gradient counts as zeros, and stays without one.
    """
    known = list(weights)
    sums = _Sums(group.wire, divide_weights(known))
    hooks = [one.register_post_accumulate_grad_hook(sums.arrived) for one in known if one.requires_grad]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
    sums.finish()


def sum_gradients(group: Group, weights: Iterable[Tensor]) -> None:
    """Replace gradients that are there already, such as those of several backward passes, by their sums."""
    _Sums(group.wire, divide_weights(weights)).finish()


def divide_weights(weights: Iterable[Tensor]) -> list[list[Tensor]]:
    """Divide weights into buckets of one type, the last weights first: the order in which gradients are computed."""
    open_buckets: dict[torch.dtype, list[Tensor]] = {}
    buckets = []
    for weight in reversed(list(weights)):
        bucket = open_buckets.setdefault(weight.dtype, [])
        bucket.append(weight)
        if sum(one.numel() for one in bucket) >= BUCKET:
            buckets.append(open_buckets.pop(weight.dtype))
    return [*buckets, *open_buckets.values()]


@attrs.frozen(eq=False)
class _Sent:
    """A bucket on its way: its gradients in one piece, and the function that waits for their sum."""

    weights: list[Tensor]
    flat: Tensor
    wait: Callable[[], None]


class _Sums:
    """The sums of one step."""

    def __init__(self, wire: Wire, buckets: list[list[Tensor]]) -> None:
        self.wire, self.buckets = wire, buckets
        self.bucket_of = {id(weight): number for number, bucket in enumerate(buckets) for weight in bucket}
        self.missing = [len(bucket) for bucket in buckets]  # gradients that are not there yet
        self.sent: list[_Sent] = []

    def arrived(self, weight: Tensor) -> None:
        """Note a gradient; send the next buckets that are complete."""
        self.missing[self.bucket_of[id(weight)]] -= 1
        while len(self.sent) < len(self.buckets) and not self.missing[len(self.sent)]:
            self._send(self.buckets[len(self.sent)])

    def finish(self) -> None:
        """Send what is left, wait for all sums, and put them in place of the gradients.

        The new gradients lie in the message. To copy each back would start a kernel per weight: half as many as a step
        of the paper's encoder starts without others.
        """
        for bucket in self.buckets[len(self.sent) :]:
            self._send(bucket)
        for one in self.sent:
            one.wait()
            for weight, summed in zip(one.weights, one.flat.split([w.numel() for w in one.weights]), strict=True):
                if weight.grad is not None:
                    weight.grad = summed.view_as(weight)

    def _send(self, bucket: list[Tensor]) -> None:
        flat = torch.cat([_gradient(weight).flatten() for weight in bucket])  # one copy of the gradients
        self.sent.append(_Sent(bucket, flat, self.wire.begin_sum(flat)))


def _gradient(weight: Tensor) -> Tensor:
    return torch.zeros_like(weight) if weight.grad is None else weight.grad
