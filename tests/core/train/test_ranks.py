"""Tests of the processes that train together, with threads in their place."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clocs_core.testing.threads import on_ranks
from clocs_core.train.ranks import Group, Part


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("instances", [0, 1, 3, 8, 9])
def test_a_batch_is_divided_in_its_order(count: int, instances: int) -> None:
    parts = on_ranks(count, lambda group: group.divide(instances))
    places = [place for part in parts for place in range(instances)[part.own]]
    assert places == list(range(instances))
    assert max(parts[0].sizes) - min(parts[0].sizes) <= 1
    assert all(part.whole == instances for part in parts)


@pytest.mark.parametrize(
    ("instances", "expected"), [(0, (0, 0, 0)), (4, (4, 0, 0)), (5, (4, 1, 0)), (12, (4, 4, 4)), (14, (8, 4, 2))]
)
def test_blocks_are_divided_whole_and_the_last_may_be_smaller(instances: int, expected: tuple[int, ...]) -> None:
    assert on_ranks(3, lambda group: group.divide_blocks(instances, 4).sizes) == [expected] * 3


def test_unequal_parts_are_joined_in_the_order_of_ranks() -> None:
    whole = torch.arange(24.0).view(2, 4, 3)

    def gather(group: Group) -> Tensor:
        part = Part(group, (1, 0, 3))
        return part.gather(whole[:, part.own], dim=1)

    for found in on_ranks(3, gather):
        assert torch.equal(found, whole)


@pytest.mark.parametrize(("processes", "dim"), [(2, 0), (1, 0), (1, 1), (1, 2)])
def test_equal_parts_are_joined_without_a_copy_where_they_lie_in_order(processes: int, dim: int) -> None:
    """A copy would be one more kernel in every step."""

    class Kept:
        rank, count = 0, processes
        found = torch.arange(24.0 * processes).view(processes, 2, 3, 4)
        sent: Tensor

        def gather(self, tensor: Tensor) -> Tensor:
            self.sent = tensor
            return self.found

    kept, own = Kept(), torch.zeros(2, 3, 4)
    joined = Part(Group(kept), (own.shape[dim],) * processes).gather(own, dim)  # type: ignore[arg-type]  # what it reads
    assert torch.equal(joined, torch.cat(list(Kept.found), dim))
    assert joined.data_ptr() == Kept.found.data_ptr()
    assert kept.sent.data_ptr() == own.data_ptr()


@pytest.mark.parametrize("dim", [1, 2])
def test_equal_parts_are_joined_along_any_dimension(dim: int) -> None:
    whole = torch.arange(48.0).view(2, 4, 6)

    def gather(group: Group) -> Tensor:
        part = group.divide(whole.shape[dim])
        return part.gather(whole.narrow(dim, part.own.start, part.sizes[group.rank]), dim)

    for found in on_ranks(2, gather):
        assert torch.equal(found, whole)


def test_lengths_that_nobody_knows_are_asked_for() -> None:
    def join(group: Group) -> Tensor:
        return group.join(torch.full((2, group.rank), float(group.rank)), dim=1)

    for found in on_ranks(3, join):
        assert found.tolist() == [[1.0, 2.0, 2.0]] * 2


def test_texts_of_all_ranks_are_exchanged() -> None:
    texts = ("", "Grüße", "x" * 1000)
    for found in on_ranks(3, lambda group: group.texts(texts[group.rank], torch.device("cpu"))):
        assert found == texts


def test_a_gather_with_gradient_adds_up_what_every_rank_wants() -> None:
    """Each rank weighs all rows by its own factor, so the gradient of a row is the sum of the factors."""

    def gradient(group: Group) -> Tensor:
        part = Part(group, (2, 1, 0))
        own = torch.ones(part.sizes[group.rank], 4, requires_grad=True)
        (part.gather_with_gradient(own).sum() * 10.0**group.rank).backward()
        assert own.grad is not None
        return own.grad

    for found, rows in zip(on_ranks(3, gradient), (2, 1, 0), strict=True):
        assert torch.equal(found, torch.full((rows, 4), 111.0))


def test_shares_of_a_mean_add_up_to_it() -> None:
    values = torch.tensor([1.0, 2.0, 6.0])

    def share(group: Group) -> Tensor:
        part = Part(group, (1, 0, 2))
        return part.share_of_mean(values[part.own].mean())

    assert sum(on_ranks(3, share)) == values.mean()


@pytest.mark.parametrize("sizes", [(2, 3), (1, 0, 2), (0, 0, 4), (1, 1, 1, 1)])
def test_every_rank_sees_all_parts_once_its_own_first(sizes: tuple[int, ...]) -> None:
    whole = torch.arange(2 * sum(sizes)).reshape(-1, 2)

    def look(group: Group) -> list[tuple[slice, torch.Tensor]]:
        part = Part(group, sizes)
        return [(place, rows.clone()) for place, rows in part.around(whole[part.own])]

    for rank, seen in enumerate(on_ranks(len(sizes), look)):
        assert all(torch.equal(rows, whole[place]) for place, rows in seen)
        assert sorted(place.start for place, _ in seen) == [sum(sizes[:n]) for n, size in enumerate(sizes) if size]
        if sizes[rank]:
            assert seen[0][0] == slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
