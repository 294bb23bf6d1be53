"""The GPU kernels over several processes: each computes its own rows. The interpreter runs them without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from triton_interpreter import pass_by_interpreter

from clocs_core.testing.threads import on_ranks
from clocs_core.train.ranks import Group, Part
from clocs_plugins.contrastive_losses import fused_rows
from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce

HERE = Path(__file__).parent
V, DIM, SIZES = 3, 4, (3, 0, 6)
K = sum(SIZES)
Z = torch.randn(V, K, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
PATIENT = torch.tensor([1, 1, 2, 3, 1, 4, 2, 2, 5])
GROUPS = {"some": "refused or (shares and 5 and 12)", "all": "test"}


@pytest.mark.parametrize("group", ["some", pytest.param("all", marks=pytest.mark.slow)])
def test_the_kernels_agree_with_the_plain_losses_under_the_interpreter(group: str) -> None:
    """The same functions that a GPU compiles, in a process of their own."""
    pass_by_interpreter(HERE / "interpreted_rows.py", "-k", GROUPS[group])


def test_where_the_kernels_cannot_run_auto_takes_chunks_and_fused_is_refused() -> None:
    def ask(group: Group) -> None:
        part = group.divide(4)
        assert not fused_rows.fits("auto", Z[:, part.own], 0.1, part)
        for compute in (
            lambda: patient_nce(Z[:, part.own], PATIENT[part.own], 0.1, impl="fused", ranks=part),
            lambda: nt_xent(Z[:, part.own], 0.1, impl="fused", ranks=part),
        ):
            with pytest.raises(ValueError, match="impl='fused'"):
                compute()

    on_ranks(2, ask)


def test_where_the_embeddings_of_all_are_too_many_no_process_gathers_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the kernels are asked for."""
    monkeypatch.setattr(fused_rows, "choose", lambda impl, *_: "fused")
    monkeypatch.setattr(fused_rows, "MOST", V * K * DIM * 8)

    def ask(group: Group) -> list[bool]:
        return [fused_rows.fits(impl, Z, 0.1, group.divide(size)) for size in (K, K + 1) for impl in ("auto", "fused")]

    assert on_ranks(2, ask) == [[True, True, False, True]] * 2


@pytest.mark.cuda
@pytest.mark.parametrize("sizes", [SIZES, (700, 0, 1348), (1, 4095), (3000, 1000, 5000)])
@pytest.mark.parametrize("loss", ["patient-nce", "released", "nt-xent"])
@pytest.mark.filterwarnings("ignore:Patient-NCE as released")
def test_on_a_gpu_several_processes_have_the_loss_and_gradients_of_one(loss: str, sizes: tuple[int, ...]) -> None:
    """Threads stand in for processes. Float16 in two halves, so that only the order of sums differs."""
    whole_batch, source = sum(sizes), torch.Generator().manual_seed(0)
    z = torch.randn(V, whole_batch, 128, generator=source).cuda()
    patient = (torch.arange(whole_batch) % max(1, whole_batch - 4)).cuda()

    def compute(views: Tensor, ids: Tensor, **more: object) -> Tensor:
        if loss == "nt-xent":
            return nt_xent(views, 0.1, precision="near-fp32", impl="fused", **more)
        variant = "released" if loss == "released" else "paper"
        return patient_nce(views, ids, 0.1, variant, precision="near-fp32", impl="fused", **more)

    whole = z.clone().requires_grad_()
    one = compute(whole, patient)
    one.backward()

    def share(group: Group) -> tuple[Tensor, Tensor]:
        part = Part(group, sizes)
        own = z[:, part.own].clone().requires_grad_()
        found = compute(own, patient[part.own], ranks=part)
        found.backward()
        return found.detach(), own.grad

    found = on_ranks(len(sizes), share)
    torch.testing.assert_close(torch.stack([value for value, _ in found]).sum(), one.detach(), rtol=2e-6, atol=2e-6)
    gradient = torch.cat([gradient for _, gradient in found], dim=1)
    assert (gradient - whole.grad).norm() <= 2e-6 * whole.grad.norm()
