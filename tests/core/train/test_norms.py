"""BatchNorm over several processes, compared with one BatchNorm that sees all rows."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from clocs_core.testing.threads import on_ranks
from clocs_core.train.gradient_sums import sum_gradients
from clocs_core.train.norms import SharedNorm, average_statistics, share_norms
from clocs_core.train.projector import RowNorm
from clocs_core.train.ranks import Group, Part

SIZES = (4, 0, 1)
ROWS = torch.randn(5, 3, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 4 + 9


def network(norm: nn.Module) -> nn.Module:
    torch.manual_seed(1)
    nn.init.normal_(norm.weight)
    return nn.Sequential(nn.Sequential(nn.Identity(), norm), nn.Tanh()).double()


@pytest.mark.parametrize("momentum", [0.1, None])
def test_shared_statistics_are_those_of_all_rows(momentum: float | None) -> None:
    one = network(nn.BatchNorm1d(3, momentum=momentum))

    def learn(group: Group) -> tuple[nn.Module, Tensor]:
        mine, part = copy.deepcopy(one), Part(group, SIZES)
        share_norms(mine, group)
        own = ROWS[part.own].clone().requires_grad_()
        for _ in range(2):
            (mine(own) ** 3).sum().backward()
        sum_gradients(group, mine.parameters())
        assert own.grad is not None
        return mine, own.grad

    found = on_ranks(3, learn)
    whole = ROWS.clone().requires_grad_()
    for _ in range(2):
        (one(whole) ** 3).sum().backward()
    assert whole.grad is not None
    assert torch.allclose(torch.cat([gradient for _, gradient in found]), whole.grad, rtol=0, atol=1e-12)
    for mine, _ in found:
        assert mine.state_dict().keys() == one.state_dict().keys()
        for name, value in one.state_dict().items():
            assert torch.allclose(mine.state_dict()[name], value, rtol=0, atol=1e-12), name
        for weight, expected in zip(mine.parameters(), one.parameters(), strict=True):
            assert weight.grad is not None
            assert torch.allclose(weight.grad, expected.grad, rtol=0, atol=1e-10)


def test_a_shared_norm_in_evaluation_is_batch_norm_and_sends_nothing() -> None:
    one = network(RowNorm(3)).eval()
    shared = copy.deepcopy(one)
    share_norms(shared, None)  # type: ignore[arg-type]  # a message would fail
    assert any(isinstance(module, SharedNorm) for module in shared.modules())
    assert torch.equal(shared(ROWS[:, :, 0]), one(ROWS[:, :, 0]))


def test_statistics_of_single_processes_are_averaged() -> None:
    """Without this, each process would validate another network, and that of process 0 would be kept."""

    def average(group: Group) -> nn.BatchNorm1d:
        norm = nn.BatchNorm1d(2)
        norm(torch.randn(5, 2, generator=torch.Generator().manual_seed(group.rank)))
        average_statistics(norm, group)
        return norm

    first, second = on_ranks(2, average)
    alone = [on_ranks(1, lambda group, seed=seed: _after(seed))[0] for seed in range(2)]
    assert torch.equal(first.running_mean, second.running_mean)
    assert torch.allclose(first.running_mean, (alone[0].running_mean + alone[1].running_mean) / 2)
    assert torch.allclose(first.running_var, (alone[0].running_var + alone[1].running_var) / 2)


def _after(seed: int) -> nn.BatchNorm1d:
    norm = nn.BatchNorm1d(2)
    norm(torch.randn(5, 2, generator=torch.Generator().manual_seed(seed)))
    return norm
