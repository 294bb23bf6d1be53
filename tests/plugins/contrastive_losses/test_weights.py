"""Groups of patients and the strengths that come of them, counted in loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_plugins.contrastive_losses.weights import group_patients, patient_strengths, plain_strengths

ids = st.lists(st.sampled_from([0, 1, 2, -5, 2**32 + 1, 2**33 + 1]), min_size=1, max_size=9)


@given(ids=ids)
@settings(max_examples=40)
def test_groups_are_what_counting_says(ids):
    """Every loss by the closed form stands on these four."""
    groups = group_patients(torch.tensor(ids))
    order = sorted(range(len(ids)), key=lambda i: (ids[i], i))
    assert groups.order.tolist() == order
    assert groups.first.tolist() == [min(order.index(k) for k in range(len(ids)) if ids[k] == one) for one in ids]
    assert groups.size.tolist() == [ids.count(one) for one in ids]
    assert groups.behind.tolist() == [ids[i + 1 :].count(one) for i, one in enumerate(ids)]


@given(ids=ids, pairs=st.integers(1, 6))
@settings(max_examples=40)
def test_strengths_are_the_weights_of_the_equations(ids, pairs):
    """Row sums of the weights w(i, k), and the weight of one pair in both directions."""
    groups, batch = group_patients(torch.tensor(ids)), len(ids)
    places = [(i, k) for i in range(batch) for k in range(batch) if i != k and ids[i] == ids[k]]
    for released in (False, True):
        used = [(i, k) for i, k in places if i < k or not released]
        terms = (4 if used else 2) if released else 1
        found = patient_strengths(groups, released, pairs, torch.float64)
        per_pair = 1 / len(used) if used else 0
        rows = [(1 / batch + sum(i == one for one, _ in used) * per_pair) / terms / pairs for i in range(batch)]
        assert found.repel.tolist() == pytest.approx(rows)
        assert found.same_instance.item() == pytest.approx(2 / batch / terms / pairs)
        both = 2 if not released else 1  # of i and k, one direction each; or each in both
        assert found.same_patient.item() == pytest.approx(both * per_pair / terms / pairs)


def test_strengths_of_nt_xent_are_one_for_each_of_two_views():
    found = plain_strengths(5, 3, torch.zeros(1, dtype=torch.float64))
    assert found.repel.tolist() == pytest.approx([1 / 30] * 5)
    assert (found.same_instance.item(), found.same_patient.item()) == (pytest.approx(1 / 15), 0)


def test_nothing_waits_for_the_device():
    """How many groups there are is not asked."""
    with FakeTensorMode():
        groups = group_patients(torch.randint(4, (8,)))
        assert patient_strengths(groups, True, 1, torch.float32).repel.shape == (8,)
