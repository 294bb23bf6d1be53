"""Choose some of very many rows: whole patients, or drawn rows where patients are few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.evaluation.thinning import thin


def test_rows_that_are_not_too_many_are_all_kept():
    np.testing.assert_array_equal(thin(np.array([3, 3, 1]), 3, 2), [0, 1, 2])


@given(st.integers(20, 60), st.integers(1, 9), st.integers(2, 5))
def test_whole_patients_are_kept(patients, rows, part):
    patient = np.repeat(np.arange(patients) * 7, rows)  # ids are any numbers
    kept = thin(patient, len(patient) // part, 2)
    assert np.array_equal(kept, np.flatnonzero(np.isin(patient, np.unique(patient[kept]))))
    assert len(kept) <= len(patient) // part + rows * part


def test_where_few_patients_would_be_left_rows_are_drawn_in_order_and_the_same_every_time():
    patient = np.repeat([1, 2, 3], 1000)
    kept = thin(patient, 300, 2)
    assert len(kept) == len(set(kept)) == 300
    assert (np.diff(kept) > 0).all()
    assert min(np.bincount(patient[kept])[1:]) > 60
    np.testing.assert_array_equal(kept, thin(patient, 300, 2))


@pytest.mark.parametrize(("small", "large"), [(63, 50_000), (5, 3000), (5, 9000)])
def test_a_patient_of_very_many_rows_leaves_at_most_twice_as_many_as_asked_for(small, large):
    """One long recording among short ones took all that distances have room for, and more."""
    patient = np.concatenate([np.zeros(large, np.int64), np.repeat(np.arange(1, 400), small)])
    kept = thin(patient, 2000, 2)
    counts = np.bincount(patient[kept])
    assert 1000 < len(kept) <= 4000
    assert set(counts[1:]) == {0, small}
    assert (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(kept, thin(patient, 2000, 2))


def test_where_all_patients_have_many_rows_each_has_as_many():
    patient = np.concatenate([np.zeros(90_000, np.int64), np.repeat(np.arange(1, 400), 3000)])
    kept = thin(patient, 8000, 2)
    counts = np.bincount(patient[kept])
    assert list(counts[counts > 0]) == [2666] * 3
