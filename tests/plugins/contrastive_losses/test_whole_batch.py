"""The GPU kernels over several processes: each computes the whole loss and keeps the gradient of its own instances."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clocs_core.testing.threads import new_meeting, on_meeting, on_ranks
from clocs_core.train.ranks import Group, Part
from clocs_plugins.contrastive_losses import whole_batch
from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce
from clocs_plugins.contrastive_losses.whole_batch import share_of_whole

V, DIM, SIZES = 3, 4, (3, 0, 6)
K = sum(SIZES)
Z = torch.randn(V, K, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
PATIENT = torch.tensor([1, 1, 2, 3, 1, 4, 2, 2, 5])


@pytest.mark.parametrize("learnt", [False, True])
def test_shares_add_up_to_the_loss_and_gradients_are_those_of_one_process(learnt: bool) -> None:
    """A loss of one process stands in for the kernels. The backward pass sends nothing."""
    whole, tau = Z.clone().requires_grad_(), torch.tensor(0.2, dtype=torch.float64, requires_grad=learnt)
    loss = patient_nce(whole, PATIENT, tau, impl="reference")
    loss.backward()
    meeting = new_meeting(3)

    def share(group: Group) -> tuple[Tensor, Tensor, Tensor | None]:
        part = Part(group, SIZES)
        own, own_tau = Z[:, part.own].clone().requires_grad_(), tau.detach().clone().requires_grad_(learnt)
        found = share_of_whole(
            lambda z, t: patient_nce(z, PATIENT, t, impl="reference"), own, own_tau if learnt else 0.2, part
        )
        found.backward()
        return found.detach(), own.grad, own_tau.grad

    found = on_meeting(meeting, share)
    torch.testing.assert_close(torch.stack([one for one, _, _ in found]).sum(), loss.detach())
    torch.testing.assert_close(torch.cat([gradient for _, gradient, _ in found], dim=1), whole.grad)
    if learnt:
        torch.testing.assert_close(sum(of_tau for _, _, of_tau in found), tau.grad)
    assert [kind for _, kind, _ in meeting.sent] == ["gather"] * 3


def test_where_the_kernels_cannot_run_auto_takes_chunks_and_fused_is_refused() -> None:
    def ask(group: Group) -> None:
        part = group.divide(4)
        assert not whole_batch.fits("auto", Z[:, part.own], 0.1, part)
        for compute in (
            lambda: patient_nce(Z[:, part.own], PATIENT[part.own], 0.1, impl="fused", ranks=part),
            lambda: nt_xent(Z[:, part.own], 0.1, impl="fused", ranks=part),
        ):
            with pytest.raises(ValueError, match="impl='fused'"):
                compute()

    on_ranks(2, ask)


def test_a_large_batch_is_computed_by_rows_unless_the_kernels_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_batch, "choose", lambda impl, *_: "fused")

    def ask(group: Group) -> list[bool]:
        return [
            whole_batch.fits(impl, Z, 0.1, group.divide(size))
            for size in (whole_batch.MOST, whole_batch.MOST + 1)
            for impl in ("auto", "fused")
        ]

    assert on_ranks(2, ask) == [[True, True, False, True]] * 2


@pytest.mark.cuda
@pytest.mark.parametrize("loss", ["patient-nce", "nt-xent"])
def test_on_a_gpu_several_processes_have_the_loss_and_gradients_of_one(loss: str) -> None:
    """Threads stand in for processes; all of them compute by the same kernels, so that nothing differs."""
    z, patient = Z.float().cuda(), PATIENT.cuda()

    def compute(views: Tensor, ids: Tensor, **more: object) -> Tensor:
        return patient_nce(views, ids, 0.1, **more) if loss == "patient-nce" else nt_xent(views, 0.1, **more)

    whole = z.clone().requires_grad_()
    one = compute(whole, patient, impl="fused")
    one.backward()

    def share(group: Group) -> tuple[Tensor, Tensor]:
        part = Part(group, SIZES)
        own = z[:, part.own].clone().requires_grad_()
        found = compute(own, patient[part.own], ranks=part)
        found.backward()
        return found.detach(), own.grad

    found = on_ranks(3, share)
    torch.testing.assert_close(torch.stack([value for value, _ in found]).sum(), one.detach())
    assert torch.equal(torch.cat([gradient for _, gradient in found], dim=1), whole.grad)
