"""Distances within and between patients."""

import numpy as np
import pytest

from clocs_core.evaluate import patients
from clocs_core.evaluate.patients import patient_distances


def material(n=60, dim=4, spread=0.3, seed=0):
    rng = np.random.default_rng(seed)
    patient = rng.integers(0, 12, n)
    centre = rng.normal(size=(12, dim))
    return (centre[patient] + spread * rng.normal(size=(n, dim))).astype(np.float32), patient


def in_loops(embedding, patient):
    """Every pair once: its distance, and whether it is of one patient."""
    intra, inter = [], []
    for i in range(len(patient)):
        for j in range(i + 1, len(patient)):
            square = sum((float(a) - float(b)) ** 2 for a, b in zip(embedding[i], embedding[j], strict=True))
            (intra if patient[i] == patient[j] else inter).append(square**0.5)
    nearer = sum((a < b) + 0.5 * (a == b) for a in intra for b in inter)
    return intra, inter, nearer / (len(intra) * len(inter))


@pytest.mark.parametrize("tile", [7, 1024])
def test_distances_and_separation_are_those_of_all_pairs(monkeypatch, tile):
    """In tiles that miss the size, no pair may be lost, and none counted twice."""
    monkeypatch.setattr(patients, "_TILE", tile)
    embedding, patient = material()
    intra, inter, nearer = in_loops(embedding, patient)
    found = patient_distances(embedding, patient)
    assert (found.intra.sum(), found.inter.sum()) == (len(intra), len(inter))
    assert found.intra_mean == pytest.approx(np.mean(intra), abs=1e-5)
    assert found.inter_mean == pytest.approx(np.mean(inter), abs=1e-5)
    assert found.separation == pytest.approx(nearer, abs=2e-3)  # bins of a histogram


def test_separation_does_not_depend_on_the_scale_and_says_nothing_of_noise():
    embedding, patient = material()
    plain = patient_distances(embedding, patient)
    scaled = patient_distances(100 * embedding + 7, patient)
    assert scaled.separation == pytest.approx(plain.separation, abs=1e-3)
    assert scaled.intra_mean == pytest.approx(100 * plain.intra_mean, rel=1e-3)
    noise, _ = material(n=400, spread=1e6)
    assert patient_distances(noise, material(n=400)[1]).separation == pytest.approx(0.5, abs=0.02)


def test_where_a_patient_never_comes_twice_or_is_alone_there_is_nothing_to_compare():
    embedding, _ = material(n=10)
    assert patient_distances(embedding, np.arange(10)) is None
    assert patient_distances(embedding, np.zeros(10, dtype=np.int64)) is None
    assert patient_distances(embedding[:0], np.arange(0)) is None


def test_equal_embeddings_are_no_separation_and_no_error():
    """A collapsed encoder still gets its report."""
    found = patient_distances(np.ones((6, 3), dtype=np.float32), np.array([0, 0, 1, 1, 2, 2]))
    assert (found.intra_mean, found.inter_mean, found.separation) == (0.0, 0.0, 0.5)


def test_of_very_many_rows_evenly_spaced_ones_are_looked_at(monkeypatch):
    monkeypatch.setattr(patients, "MOST", 20)
    embedding, patient = material(n=100)
    found = patient_distances(embedding, patient)
    assert found.intra.sum() + found.inter.sum() == 20 * 19 // 2
