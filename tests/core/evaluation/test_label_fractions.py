"""A share of the labels: by frame or by patient, nested, and the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.evaluation.label_fractions import choose_rows

patients = st.lists(st.integers(0, 6), min_size=1, max_size=40).map(np.array)
fractions = st.floats(0.01, 1.0)
quick = settings(max_examples=50)


@given(patient=patients, first=fractions, second=fractions, seed=st.integers(0, 99))
@pytest.mark.parametrize("of", ["frames", "patients"])
@quick
def test_a_smaller_share_lies_within_a_larger_one(of, patient, first, second, seed):
    """What is learnt from more labels must not be learnt from other labels."""
    few, many = (set(choose_rows(patient, share, seed, of).tolist()) for share in sorted((first, second)))
    assert few <= many
    assert few


@given(patient=patients, fraction=fractions, seed=st.integers(0, 99))
@quick
def test_a_share_of_frames_has_so_many_rows_whoever_they_are_of(patient, fraction, seed):
    rows = choose_rows(patient, fraction, seed, "frames").tolist()
    assert len(rows) == max(1, int(fraction * len(patient)))
    assert rows == sorted(set(rows))


@given(patient=patients, fraction=fractions, seed=st.integers(0, 99))
@quick
def test_a_share_of_patients_has_all_rows_of_so_many_of_them(patient, fraction, seed):
    """Half a patient would leave the other half as a near copy of what was learnt."""
    rows = choose_rows(patient, fraction, seed, "patients").tolist()
    chosen = {patient[row] for row in rows}
    assert len(chosen) == max(1, int(fraction * len(set(patient.tolist()))))
    assert rows == [row for row in range(len(patient)) if patient[row] in chosen]


@pytest.mark.parametrize("of", ["frames", "patients"])
def test_another_seed_chooses_others(of):
    patient = np.arange(100) // 2
    shares = [choose_rows(patient, 0.5, seed, of).tolist() for seed in (0, 0, 1)]
    assert shares[0] == shares[1] != shares[2]
