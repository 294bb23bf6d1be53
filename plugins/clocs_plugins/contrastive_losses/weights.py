"""How strongly instances attract and repel: the closed form of both losses, in which no pair of instances is visited.

A pair of views costs  sum_i a_i·(lse_i + lse'_i) - (d·sum_i h_vi·h_wi + f·sum_i h_vi·o_wi)/tau, where o_wi is the sum
of the embeddings of the other instances of i's patient. That is a reordering of equations 2 to 4: a sum over the
pairs of a patient of lse_i only counts them, and one of similarities goes through the sum of embeddings.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Groups(NamedTuple):  # torch.compile cannot make an attrs class
    """The instances of a batch by patient, each (batch,) int64. Found by a sort: no shape depends on the ids."""

    order: Tensor  # the instances, patient after patient, each patient's in the order of the batch
    first: Tensor  # of each instance: where its patient begins in that order
    size: Tensor  # of each instance: how many its patient has
    behind: Tensor  # of each instance: how many of its patient stand behind it in the batch


def group_patients(patient: Tensor) -> Groups:
    """Sort a batch by patient."""
    patient = patient.to(torch.int64).contiguous()
    ids, order = patient.sort(stable=True)
    first = torch.searchsorted(ids, patient)
    end = torch.searchsorted(ids, patient, right=True)
    place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    return Groups(order, first, end - first, end - 1 - place)


class Strengths(NamedTuple):
    """What a pair of views is weighted with: a (batch,) repels, d and f, scalars, attract."""

    repel: Tensor
    same_instance: Tensor
    same_patient: Tensor


def patient_strengths(groups: Groups, released: bool, pairs: int, dtype: torch.dtype) -> Strengths:
    """Those of patient-NCE, by the paper's formula or the released one, divided by the number of pairs of views."""
    others = groups.behind if released else groups.size - 1  # (batch,)
    found = others.sum()  # a tensor: whether a patient comes twice is not asked on the host
    per_pair = torch.where(found > 0, 1 / found.clamp(min=1).to(dtype), 0.0)
    share = torch.where(found > 0, 0.25, 0.5).to(dtype) / pairs if released else torch.ones_like(per_pair) / pairs
    batch = len(others)
    repel = (1 / batch + others.to(dtype) * per_pair) * share
    return Strengths(repel, 2 / batch * share, (1 if released else 2) * per_pair * share)


def plain_strengths(batch: int, pairs: int, like: Tensor) -> Strengths:
    """Those of NT-Xent: every anchor alike, and nobody is of the same patient."""
    share = like.new_full((), 1 / (batch * pairs))
    return Strengths((share / 2).expand(batch), share, torch.zeros_like(share))
