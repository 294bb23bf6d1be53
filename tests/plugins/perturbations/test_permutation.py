"""Permutation: pieces stay whole, and nothing else does."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_plugins.perturbations.options import PermutationOptions
from clocs_plugins.perturbations.permutation import permute

quick = settings(max_examples=25)


def borders_of(samples, pieces):
    return [i * samples // pieces for i in range(pieces + 1)]


def order_of(permuted, samples, pieces):
    """The order in which the pieces of the signal 0, 1, 2, ... come. Fails where a piece is not whole."""
    borders = borders_of(samples, pieces)
    ends = {begin: end for begin, end in pairwise(borders) if end > begin}
    order, position = [], 0
    while position < samples:
        begin = permuted[position]
        assert begin in ends, f"{begin} does not begin a piece"
        length = ends[begin] - begin
        assert permuted[position : position + length] == list(range(begin, ends[begin]))
        order.append(begin)
        position += length
    assert sorted(order) == sorted(ends)
    return order


@given(samples=st.integers(1, 120), pieces=st.integers(1, 40), seed=st.integers(0, 2**31))
@quick
def test_the_result_is_the_pieces_in_some_order(samples, pieces, seed):
    """Whether the pieces divide the signal or not, no sample is lost and none comes twice."""
    signal = torch.arange(samples).expand(2, 3, samples)
    permuted = permute(signal, torch.Generator().manual_seed(seed), pieces=pieces)
    for row in permuted.reshape(-1, samples).tolist():
        order_of(row, samples, pieces)


@given(samples=st.integers(1, 400), pieces=st.integers(1, 30))
@quick
def test_pieces_differ_by_one_sample_at_most(samples, pieces):
    """A long rest at the end would give the cut away."""
    lengths = [end - begin for begin, end in pairwise(borders_of(samples, pieces))]
    assert max(lengths) - min(lengths) <= 1
    assert len(order_of(list(range(samples)), samples, pieces)) == min(samples, pieces)


def test_all_orders_come_equally_often_and_each_signal_has_its_own():
    """6000 signals, six orders: five standard deviations are 144."""
    permuted = permute(torch.arange(7).expand(6000, 7), torch.Generator().manual_seed(0), pieces=3)
    seen = Counter(tuple(order_of(row, 7, 3)) for row in permuted.tolist())
    assert set(seen) == set(permutations([0, 2, 4]))
    assert all(abs(count - 1000) < 144 for count in seen.values())


def test_one_piece_is_no_change():
    signal = torch.randn(3, 50)
    assert torch.equal(permute(signal, torch.Generator(), pieces=1), signal)


def test_there_are_20_pieces_unless_said_otherwise():
    """As in the code that Sarkar and Etemad released."""
    permuted = permute(torch.arange(2500), torch.Generator().manual_seed(0), pieces=PermutationOptions().pieces)
    order = order_of(permuted.tolist(), 2500, 20)
    assert order != sorted(order)


@pytest.mark.parametrize("pieces", [0, -3])
def test_no_pieces_are_refused(pieces):
    with pytest.raises(ValueError, match="pieces must be 1 or more, got"):
        PermutationOptions(pieces=pieces)
