"""Tests of sums of gradients, with threads in place of processes."""

from __future__ import annotations

from unittest import mock

import pytest
import torch
from torch import Tensor, nn

from clocs_core.testing.threads import on_ranks
from clocs_core.train import gradient_sums
from clocs_core.train.gradient_sums import divide_weights, sum_gradients, summing_gradients
from clocs_core.train.ranks import Group


def test_gradients_of_weights_are_added_up_and_none_stays_none() -> None:
    """Adam leaves a weight without a gradient alone; one of zeros it would let decay."""

    def gradients(group: Group) -> list[Tensor | None]:
        weights = [torch.zeros(2, 3), torch.zeros(4), torch.zeros(5, dtype=torch.float64)]
        weights[0].grad = torch.full((3, 2), group.rank + 1.0).T  # not contiguous
        weights[2].grad = torch.full((5,), 10.0 * group.rank, dtype=torch.float64)
        sum_gradients(group, weights)
        return [weight.grad for weight in weights]

    for first, second, third in on_ranks(2, gradients):
        assert first is not None
        assert torch.equal(first, torch.full((2, 3), 3.0))
        assert second is None
        assert third is not None
        assert torch.equal(third, torch.full((5,), 10.0, dtype=torch.float64))


def test_buckets_have_the_last_weights_first_one_type_each_and_every_weight_once() -> None:
    weights = [torch.zeros(size) for size in (5, 3, 4, 2)] + [torch.zeros(3, dtype=torch.float64)]
    with mock.patch.object(gradient_sums, "BUCKET", 6):
        buckets = divide_weights(weights)
    assert [[len(one) for one in bucket] for bucket in buckets] == [[2, 4], [3, 5], [3]]
    assert buckets[2][0].dtype == torch.float64
    assert divide_weights([]) == []


class _Noting:
    """A wire of one process that notes when each sum begins and when it is waited for."""

    rank, count = 0, 1

    def __init__(self, heard: list[str]) -> None:
        self.heard = heard

    def begin_sum(self, tensor: Tensor):
        self.heard.append(f"begin {tensor.numel()}")
        return lambda: self.heard.append(f"wait {tensor.numel()}")


class _Note(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, heard):
        ctx.heard = heard
        return x.clone()

    @staticmethod
    def backward(ctx, outer):
        ctx.heard.append("first layer")
        return outer, None


def test_the_sum_of_the_last_layer_begins_before_the_gradient_of_the_first_is_computed() -> None:
    heard: list[str] = []
    first, last = nn.Linear(4, 3, bias=False), nn.Linear(3, 2, bias=False)
    with (
        mock.patch.object(gradient_sums, "BUCKET", 6),
        summing_gradients(Group(_Noting(heard)), [first.weight, last.weight]),
    ):
        last(_Note.apply(first(torch.randn(5, 4)), heard)).sum().backward()
    assert heard == ["begin 6", "first layer", "begin 12", "wait 6", "wait 12"]


def test_buckets_are_sent_in_one_order_whichever_is_complete_first() -> None:
    """The last weight has no gradient here, as it may in one process only: its bucket goes first all the same."""
    heard: list[str] = []
    used, unused = nn.Parameter(torch.ones(7)), nn.Parameter(torch.ones(6))
    with mock.patch.object(gradient_sums, "BUCKET", 6), summing_gradients(Group(_Noting(heard)), [used, unused]):
        used.sum().backward()
    assert heard == ["begin 6", "begin 7", "wait 6", "wait 7"]
    assert unused.grad is None


@pytest.mark.parametrize("bucket", [1, 10, 10**6])
def test_a_backward_pass_ends_with_the_gradients_of_all(bucket: int) -> None:
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    x = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    network(x).square().sum().backward()
    expected = [weight.grad for weight in network.parameters()]

    def gradients(group: Group) -> list[Tensor | None]:
        own = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).double()
        own.load_state_dict(network.state_dict())
        with summing_gradients(group, own.parameters()):
            own(x[group.rank :: 3]).square().sum().backward()
        return [weight.grad for weight in own.parameters()]

    with mock.patch.object(gradient_sums, "BUCKET", bucket):
        for found in on_ranks(3, gradients):
            for one, right in zip(found, expected, strict=True):
                torch.testing.assert_close(one, right)


def test_an_error_in_the_backward_pass_leaves_no_hook_behind() -> None:
    weight = nn.Parameter(torch.ones(3))
    heard: list[str] = []
    with pytest.raises(ZeroDivisionError), summing_gradients(Group(_Noting(heard)), [weight]):
        raise ZeroDivisionError
    weight.sum().backward()
    assert heard == []


def test_sums_stay_where_they_arrived_instead_of_a_copy_for_each_weight() -> None:
    """The paper's encoder has 14 weights, and a step of it alone starts 30 kernels."""
    weights = [nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(5))]
    for weight in weights:
        weight.grad = torch.full_like(weight, 2.0)
    sum_gradients(Group(_Noting([])), weights)
    places = {weight.grad.untyped_storage().data_ptr() for weight in weights if weight.grad is not None}
    assert len(places) == 1
    assert all(weight.grad is not None and torch.equal(weight.grad, 2 * weight.detach()) for weight in weights)
