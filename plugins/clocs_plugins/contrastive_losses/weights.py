"""Weights of attraction and repulsion: the closed form of both losses, without a loop over pairs of instances.

A pair of views costs  sum_i a_i·(lse_i + lse'_i) - (d·sum_i h_vi·h_wi + f·sum_i h_vi·o_wi)/tau, where o_wi is the sum
of the embeddings of the other instances of i's patient. This reorders equations 2 to 4: the sum of lse_i over the pairs
of a patient only counts them, and the sum of similarities is a product with the sum of embeddings.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Groups(NamedTuple):  # torch.compile cannot construct an attrs class
    """The instances of a batch by patient, each (batch,) int64. Found by a sort: no shape depends on the ids."""

    order: Tensor  # the instances sorted by patient, then by place in the batch
    first: Tensor  # per instance: start of its patient in that order
    size: Tensor  # per instance: number of its patient's instances
    behind: Tensor  # per instance: number of its patient's instances after it in the batch


def group_patients(patient: Tensor) -> Groups:
    """Sort a batch by patient."""
    patient = patient.to(torch.int64).contiguous()
    ids, order = patient.sort(stable=True)
    first = torch.searchsorted(ids, patient)
    end = torch.searchsorted(ids, patient, right=True)
    place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    return Groups(order, first, end - first, end - 1 - place)


class Strengths(NamedTuple):
    """The weights of a pair of views: a (batch,) of the repulsion, d and f, scalars, of the attraction."""

    repel: Tensor
    same_instance: Tensor
    same_patient: Tensor


def patient_strengths(groups: Groups, released: bool, pairs: int, dtype: torch.dtype) -> Strengths:
    """Return the weights of patient-NCE, by the paper's formula or the released one, divided by the number of pairs."""
    others = groups.behind if released else groups.size - 1  # (batch,)
    found = others.sum()  # a tensor: no host sync to see whether a patient occurs twice
    per_pair = torch.where(found > 0, 1 / found.clamp(min=1).to(dtype), 0.0)
    share = torch.where(found > 0, 0.25, 0.5).to(dtype) / pairs if released else torch.ones_like(per_pair) / pairs
    batch = len(others)
    repel = (1 / batch + others.to(dtype) * per_pair) * share
    return Strengths(repel, 2 / batch * share, (1 if released else 2) * per_pair * share)


def plain_strengths(batch: int, pairs: int, like: Tensor) -> Strengths:
    """Return the weights of NT-Xent: equal for every anchor, and none for the same patient."""
    share = like.new_full((), 1 / (batch * pairs))
    return Strengths((share / 2).expand(batch), share, torch.zeros_like(share))
