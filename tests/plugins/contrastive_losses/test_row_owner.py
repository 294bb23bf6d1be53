"""The losses over several processes: chunks, a learnt temperature, what is sent, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from clocs_core.testing.threads import new_meeting, on_meeting, on_ranks
from clocs_core.train.ranks import Group, Part
from clocs_plugins.contrastive_losses import row_owner
from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce
from clocs_plugins.contrastive_losses.row_owner import row_owner_loss
from clocs_plugins.contrastive_losses.weights import group_patients, patient_strengths, plain_strengths

V, DIM, SIZES = 3, 4, (3, 0, 6)
K = sum(SIZES)
Z = torch.randn(V, K, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
PATIENT = torch.tensor([1, 1, 2, 3, 1, 4, 2, 2, 5])


@pytest.mark.parametrize("loss", ["patient-nce", "nt-xent"])
@pytest.mark.parametrize("impl", ["chunked", "reference"])
def test_a_learnt_temperature_gets_its_gradient(loss: str, impl: str) -> None:
    def compute(z, patient, tau, **more):
        return patient_nce(z, patient, tau, **more) if loss == "patient-nce" else nt_xent(z, tau, **more)

    def gradient(group: Group) -> torch.Tensor:
        part = Part(group, SIZES)
        tau = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
        compute(Z[:, part.own], PATIENT[part.own], tau, impl=impl, ranks=part).backward()
        return tau.grad

    tau = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    compute(Z, PATIENT, tau, impl="reference").backward()
    assert torch.allclose(sum(on_ranks(3, gradient)), tau.grad, rtol=1e-12)


@pytest.mark.parametrize("at_once", [1, 20, 100])
@pytest.mark.parametrize("alone", [False, True])
def test_the_size_of_chunks_changes_nothing(at_once: int, alone: bool) -> None:
    groups = None if alone else group_patients(PATIENT)
    strengths = plain_strengths(K, 3, Z) if groups is None else patient_strengths(groups, False, 3, Z.dtype)

    def share(group: Group, at_once: int) -> tuple[float, torch.Tensor]:
        part = Part(group, SIZES)
        own = Z[:, part.own].clone().requires_grad_()
        loss = row_owner_loss(own, 0.1, strengths, groups, part, at_once)
        loss.backward()
        return loss.item(), own.grad

    for (loss, gradient), (other, expected) in zip(
        on_ranks(3, lambda group: share(group, at_once)), on_ranks(3, lambda group: share(group, 10**6)), strict=True
    ):
        assert loss == pytest.approx(other, rel=1e-12)
        assert torch.allclose(gradient, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("trains", [True, False])
def test_a_step_sends_directions_ids_and_row_statistics_and_no_gradient(trains: bool) -> None:
    """The bytes of docs/scale.md: V·K·E numbers and K ids, in training V²·K more; the backward pass sends nothing."""
    meeting = new_meeting(3)

    def step(group: Group) -> torch.Tensor:
        part = Part(group, SIZES)
        own = Z[:, part.own].clone().requires_grad_(trains)
        return patient_nce(own, PATIENT[part.own], 0.1, ranks=part)

    losses = on_meeting(meeting, step)
    most, sent = max(SIZES), Counter(rank for rank, _, _ in meeting.sent)
    numbers = V * most * DIM + most + (V * V * most if trains else 0)  # ids and float64 have 8 bytes each
    for rank in range(3):
        assert sum(size for one, _, size in meeting.sent if one == rank) == 8 * numbers
        assert sent[rank] == (3 if trains else 2)
    before = len(meeting.sent)
    for loss in losses if trains else ():
        loss.backward()  # in one thread, one after the other: a message would wait for ever
    assert len(meeting.sent) == before


def test_a_second_derivative_is_refused() -> None:
    def ask(group: Group) -> None:
        part = group.divide(K)
        own = Z[:, part.own].clone().requires_grad_()
        loss = patient_nce(own, PATIENT[part.own], 0.1, ranks=part)
        (first,) = torch.autograd.grad(loss, own, create_graph=True)
        with pytest.raises(RuntimeError, match="a first derivative only"):
            first.square().sum().backward()

    on_ranks(2, ask)


@pytest.fixture
def in_a_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clocs_plugins.contrastive_losses.row_owner.MOST", 0)


def with_gradient(group: Group, sizes: tuple[int, ...], loss: str, impl: str) -> tuple[torch.Tensor, ...]:
    """The share of one process, and the gradients of its embeddings and of the temperature."""
    part = Part(group, sizes)
    own = Z[:, part.own].clone().requires_grad_()
    tau = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    if loss == "nt-xent":
        share = nt_xent(own, tau, impl=impl, ranks=part)
    else:
        share = patient_nce(own, PATIENT[part.own], tau, impl=impl, ranks=part)
    share.backward()
    return share.detach(), own.grad, tau.grad


@pytest.mark.usefixtures("in_a_ring")
@pytest.mark.parametrize("loss", ["patient-nce", "nt-xent"])
@pytest.mark.parametrize("sizes", [SIZES, (9, 0), (0, 9), (4, 5), (1, 2, 3, 3), (0, 0, 9)])
def test_a_ring_gives_what_gathered_embeddings_give(loss: str, sizes: tuple[int, ...]) -> None:
    ring = on_ranks(len(sizes), lambda group: with_gradient(group, sizes, loss, "chunked"))
    gathered = on_ranks(len(sizes), lambda group: with_gradient(group, sizes, loss, "reference"))
    assert torch.allclose(sum(share for share, _, _ in ring), sum(share for share, _, _ in gathered), rtol=1e-12)
    assert torch.allclose(sum(tau for _, _, tau in ring), sum(tau for _, _, tau in gathered), rtol=1e-11)
    for (_, found, _), (_, expected, _) in zip(ring, gathered, strict=True):
        assert torch.allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("in_a_ring")
def test_in_a_ring_no_process_gets_more_than_a_block_at_a_time_and_the_backward_pass_sends_nothing() -> None:
    """The bytes of docs/scale.md: in each round a block of V·K/W·E numbers a turn, in the second 2·V²·K/W more."""
    meeting = new_meeting(3)

    def step(group: Group) -> torch.Tensor:
        part = Part(group, SIZES)
        return patient_nce(Z[:, part.own].clone().requires_grad_(), PATIENT[part.own], 0.1, ranks=part)

    losses = on_meeting(meeting, step)
    most = max(SIZES)
    first, second = 8 * most * V * DIM, 8 * most * (V * DIM + 2 * V * V)
    for rank in range(3):
        sent = [(kind, size) for one, kind, size in meeting.sent if one == rank]
        assert sent == [("gather", 8 * most), *[("pass on", first)] * 2, *[("pass on", second)] * 2]
    before = len(meeting.sent)
    for loss in losses:
        loss.backward()
    assert len(meeting.sent) == before


@pytest.mark.usefixtures("in_a_ring")
def test_a_ring_has_no_second_derivative() -> None:
    test_a_second_derivative_is_refused()


class Largest(TorchDispatchMode):
    """Notes the size of the largest tensor that any operator returns."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for one in found if isinstance(found, tuple | list) else [found]:
            self.numbers = max(self.numbers, one.numel() if isinstance(one, torch.Tensor) else 0)
        return found


@pytest.mark.parametrize("most", [2**30, 0])
@pytest.mark.parametrize("alone", [False, True])
def test_no_process_has_a_matrix_of_all_instances_by_all_or_by_its_own(
    most: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither with gathered columns nor in a ring, forwards or backwards: a chunk is the largest tensor."""
    monkeypatch.setattr(row_owner, "MOST", most)
    many, at_once = 256, 2048
    z = torch.randn(2, many, DIM, generator=torch.Generator().manual_seed(0))
    groups = None if alone else group_patients(torch.arange(many) // 2)
    strengths = plain_strengths(many, 1, z) if groups is None else patient_strengths(groups, False, 1, z.dtype)

    def largest(group: Group) -> int:
        part = group.divide(many)
        own = z[:, part.own].clone().requires_grad_()
        with Largest() as seen:
            row_owner_loss(own, 0.1, strengths, groups, part, at_once).backward()
        return seen.numbers

    assert max(on_ranks(2, largest)) <= at_once < many * many // 2
