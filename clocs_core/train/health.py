"""Measure from an epoch's validation embeddings whether training collapses."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clocs_core.contracts.events import Health
from clocs_core.turns import waiting

MEASURED = 1024  # embeddings measured: the cost is a 1024 x 1024 cosine matrix and one SVD, about 10 ms on a CPU


def measure(z: Tensor, patient: Tensor, train_loss: float, batch_size: int) -> Health:
    """Measure embeddings (view, n, dim) of patients (n,). Reduces in float32, with one host sync."""
    z = z[:, :MEASURED].float()
    patient = patient[:MEASURED]
    first, last = z[0], z[-1]
    cosine = torch.nn.functional.normalize(first, dim=1) @ torch.nn.functional.normalize(last, dim=1).T  # (n, n)
    same = (patient[:, None] == patient[None, :]).float()
    other = 1 - same
    if len(z) == 1:  # with one view, leave out the comparison of an embedding with itself
        same = same - torch.eye(len(same), device=same.device)
    with waiting():
        numbers = torch.stack([effective_rank(first), _mean(cosine, same), _mean(cosine, other)]).tolist()  # sync point
    return Health(
        effective_rank=numbers[0],
        embedding_dim=z.shape[2],
        same_patient=numbers[1],
        other_patient=numbers[2],
        loss_over_log_batch=train_loss / math.log(max(batch_size, 2)),
    )


def effective_rank(z: Tensor) -> Tensor:
    """Compute exp(entropy of the normalised singular values) of centred embeddings (n, dim) (Roy & Vetterli 2007)."""
    values = torch.linalg.svdvals(z - z.mean(0))
    share = values / values.sum().clamp_min(torch.finfo(values.dtype).tiny)
    entropy: Tensor = torch.special.entr(share).sum()
    return entropy.exp()


def _mean(values: Tensor, weight: Tensor) -> Tensor:
    return (values * weight).sum() / weight.sum()  # NaN where there is no such pair
