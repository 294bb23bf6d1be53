"""The processes that train together, as a loss or an objective sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor


class Ranks(Protocol):
    """The processes that share one batch, each with some of its instances, or with none.

    A loss or an objective with an argument `ranks` gets the instances of its own process, and returns its share: the
    shares of all processes add up to the loss of the whole batch. The backward pass must give each process the gradient
    of the whole loss for its own embeddings. With one process, `ranks` is None.

    All processes must call the same methods in the same order. A process without instances does so with empty tensors,
    which networks of an objective itself must take; `encode` takes them with any encoder.
    """

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Instances of each process."""

    @property
    def own(self) -> slice:
        """Place of the own instances in the whole batch, which has those of process 0 first."""

    @property
    def whole(self) -> int:
        """Instances of the whole batch."""

    def patients(self, own: Tensor) -> Tensor:
        """Return the patients (batch,) of the whole batch. own: those of this process."""

    def gather(self, tensor: Tensor, dim: int = 0) -> Tensor:
        """Join the tensors of all processes along `dim`, where each has its instances. Has no gradient."""

    def gather_with_gradient(self, tensor: Tensor, dim: int = 0) -> Tensor:
        """Join as `gather` does. The backward pass adds up the gradients of all processes."""

    def around(self, tensor: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Yield the place in the batch and the rows (instance, ...) of each process that has any, the own first.

        Each process passes on what it got, so that no process has all rows. The next rows come while these are used.
        Take all of them. Has no gradient.
        """

    def sum(self, tensor: Tensor) -> Tensor:
        """Add up tensors of one shape over all processes. Has no gradient."""

    def share_of_mean(self, mean: Tensor) -> Tensor:
        """Turn a mean over the own instances, NaN where there are none, into the share of the mean over all."""
