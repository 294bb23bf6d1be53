"""Measure from an epoch's validation embeddings whether training collapses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from clocs_core.contracts.events import Health

MEASURED = 1024  # embeddings measured: a 1024 x 1024 cosine matrix and the eigenvalues of a dim x dim matrix


def measure(z: Tensor, patient: Tensor) -> Tensor:
    """Compute what health follows from, of embeddings (view, n, dim) of patients (n,). No host sync.

    Returns the mean cosine of embeddings of one patient and of different ones, and `_products`, in one float64 vector.
    """
    z = z[:, :MEASURED].float()
    patient = patient[:MEASURED]
    first, last = z[0], z[-1]
    cosine = torch.nn.functional.normalize(first, dim=1) @ torch.nn.functional.normalize(last, dim=1).T  # (n, n)
    same = (patient[:, None] == patient[None, :]).float()
    other = 1 - same
    if len(z) == 1:  # with one view, leave out the comparison of an embedding with itself
        same = same - torch.eye(len(same), device=same.device)
    return torch.cat([_mean(cosine, same)[None], _mean(cosine, other)[None], _products(first).flatten()])


def judge(measured: Tensor, dim: int, train_loss: float, batch_size: int) -> Health:
    """Make Health of the vector of `measure`, on the host."""
    products = measured[2:]
    side = math.isqrt(len(products))
    return Health(
        effective_rank=_rank(products.view(side, side)),
        embedding_dim=dim,
        same_patient=float(measured[0]),
        other_patient=float(measured[1]),
        loss_over_log_batch=train_loss / math.log(max(batch_size, 2)),
    )


def effective_rank(z: Tensor) -> float:
    """Compute exp(entropy of the normalised singular values) of centred embeddings (n, dim) (Roy & Vetterli 2007)."""
    return _rank(_products(z).cpu())


def _products(z: Tensor) -> Tensor:
    """Return the products of all pairs of columns of centred embeddings (n, dim), or of rows if they are fewer.

    Their eigenvalues are the squares of the singular values; in float64, since half of the digits are lost. A GPU needs
    some 10 ms for the singular values of 1024 x 128, the CPU 1 ms for the eigenvalues of 128 x 128.
    """
    z = z.double() - z.double().mean(0)
    return z.T @ z if z.shape[0] >= z.shape[1] else z @ z.T


def _rank(products: Tensor) -> float:
    with _one_thread():
        values = torch.linalg.eigvalsh(products).clamp_min(0).sqrt()
    share = values / values.sum().clamp_min(torch.finfo(values.dtype).tiny)
    entropy: Tensor = torch.special.entr(share).sum()
    return float(entropy.exp())


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch compute with one thread: waking 16 of them took 12 ms for the eigenvalues of 128 x 128, one takes 1."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _mean(values: Tensor, weight: Tensor) -> Tensor:
    return (values * weight).sum() / weight.sum()  # NaN where there is no such pair
