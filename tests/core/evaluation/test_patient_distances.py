"""Distances within and between patients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.evaluation import patient_distances as patients
from clocs_core.evaluation.distance_bins import coarsen
from clocs_core.evaluation.patient_distances import patient_distances


def cohort(n=60, dim=4, spread=0.3, seed=0):
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
    embedding, patient = cohort()
    intra, inter, nearer = in_loops(embedding, patient)
    found = patient_distances(embedding, patient)
    assert (found.intra.sum(), found.inter.sum()) == (len(intra), len(inter))
    assert found.intra_mean == pytest.approx(np.mean(intra), abs=1e-5)
    assert found.inter_mean == pytest.approx(np.mean(inter), abs=1e-5)
    assert found.separation == pytest.approx(nearer, abs=2e-3)  # bins of a histogram


def test_separation_does_not_depend_on_the_scale_and_says_nothing_of_noise():
    embedding, patient = cohort()
    plain = patient_distances(embedding, patient)
    scaled = patient_distances(100 * embedding + 7, patient)
    assert scaled.separation == pytest.approx(plain.separation, abs=1e-3)
    assert scaled.intra_mean == pytest.approx(100 * plain.intra_mean, rel=1e-3)
    noise, _ = cohort(n=400, spread=1e6)
    assert patient_distances(noise, cohort(n=400)[1]).separation == pytest.approx(0.5, abs=0.02)


def test_where_a_patient_never_comes_twice_or_is_alone_there_is_nothing_to_compare():
    embedding, _ = cohort(n=10)
    assert patient_distances(embedding, np.arange(10)) is None
    assert patient_distances(embedding, np.zeros(10, dtype=np.int64)) is None
    assert patient_distances(embedding[:0], np.arange(0)) is None


def test_equal_embeddings_are_no_separation_and_no_error():
    """A collapsed encoder still gets its report."""
    found = patient_distances(np.ones((6, 3), dtype=np.float32), np.array([0, 0, 1, 1, 2, 2]))
    assert (found.intra_mean, found.inter_mean, found.separation) == (0.0, 0.0, 0.5)


def test_of_very_many_rows_some_patients_are_compared_with_all_their_leads(monkeypatch):
    """Rows at even distances would be of one lead alone, or hold no pair of a patient."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(200), 8)  # two frames of four leads each, lead by lead
    lead = np.tile(np.repeat(np.arange(4), 2), 200)
    embedding = rng.normal(size=(len(patient), 3)).astype(np.float32) + 3 * lead[:, None].astype(np.float32)
    whole = patient_distances(embedding, patient)
    monkeypatch.setattr(patients, "MOST", len(patient) // 4)
    some = patient_distances(embedding, patient)
    assert some.intra.sum() == 50 * 8 * 7 // 2
    assert some.intra_mean == pytest.approx(whole.intra_mean, rel=0.05)
    assert some.separation == pytest.approx(whole.separation, abs=0.02)


def test_of_many_rows_of_few_patients_rows_are_drawn(monkeypatch):
    embedding, patient = cohort(n=100)
    monkeypatch.setattr(patients, "MOST", 20)
    found = patient_distances(embedding, patient)
    assert found.intra.sum() + found.inter.sum() == 20 * 19 // 2


@given(st.integers(0, 10_000), st.integers(1, 80), st.sampled_from([1e-3, 1.0, 50.0]))
@settings(max_examples=30)
def test_a_coarse_histogram_counts_every_distance_once_in_its_bin(seed, most, spread):
    """Counted by a loop over all pairs; distances that lie on an edge but for rounding may be on either side."""
    embedding, patient = cohort(n=24, spread=spread, seed=seed)
    found = patient_distances(embedding, patient)
    if found is None:
        return
    edges, *counts = coarsen(found, most)
    assert 1 <= len(edges) - 1 <= most
    assert edges[0] == 0
    assert np.allclose(np.diff(edges), edges[1])
    for kind, mine in zip(in_loops(embedding, patient)[:2], counts, strict=True):
        assert mine.sum() == len(kind)
        assert max(kind) <= edges[-1] * (1 + 1e-6)
        for place, edge in enumerate(edges[1:], start=1):
            slack = 1e-4 * edges[-1]
            below = [sum(distance < edge + shift for distance in kind) for shift in (-slack, slack)]
            assert below[0] <= mine[:place].sum() <= below[1]


def test_a_coarse_histogram_ends_where_the_distances_do():
    """Bins that nobody is in would leave the curve in a corner: most distances are far below the widest possible."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(60, 3)) * 0.01, [[1.0, 0, 0]]]).astype(np.float32)
    found = patient_distances(rows, np.arange(61) % 6)
    edges, intra, inter = coarsen(found, 64)
    assert (intra + inter)[-1] > 0
    assert 32 < len(intra) <= 64
    assert edges[-1] < found.edges[-1]


@pytest.mark.parametrize("tile", [7, 1024])
def test_a_device_counts_as_the_cpu_does(monkeypatch, tile):
    """Here on the CPU; with equal rows, and with a distance on the last edge.

    Of equal rows, rounding leaves some 1e-16 of a square and 1e-8 of a distance, here or there: 1e-10 of a mean.
    """
    embedding, patient = cohort(n=50)
    embedding[:5], embedding[6:] = embedding[5], embedding[6:].round()
    embedding[8], embedding[9] = 9, -9
    expected = patient_distances(embedding, patient)
    monkeypatch.setattr(patients, "_TILE", tile)
    with monkeypatch.context() as patch:
        patch.setattr(patients, "_count", lambda *rows: patients.count_on(torch.device("cpu"), *rows, tile))
        found = patient_distances(embedding, patient)
    assert np.array_equal(found.intra, expected.intra)
    assert np.array_equal(found.inter, expected.inter)
    assert (found.intra_mean, found.inter_mean) == pytest.approx((expected.intra_mean, expected.inter_mean), rel=1e-9)


@pytest.mark.filterwarnings("ignore:The memory of cuda does not suffice")
def test_smaller_tiles_then_the_cpu_compute_where_a_gpu_is_short_of_memory(monkeypatch):
    asked = []

    def short(device, rows, ids, edges, tile):
        asked.append(tile)
        raise torch.OutOfMemoryError

    monkeypatch.setattr(patients, "count_on", short)
    embedding, patient = cohort()
    found = patient_distances(embedding, patient, torch.device("cuda"))
    assert found.separation == patient_distances(embedding, patient).separation
    assert asked == [1024, 128, 16]


@pytest.mark.cuda
def test_a_gpu_counts_the_same_distances():
    """But for a distance on the edge of two bins, which rounding decides."""
    embedding, patient = cohort(n=3000, dim=64)
    found, expected = patient_distances(embedding, patient, torch.device("cuda")), patient_distances(embedding, patient)
    assert np.abs(found.intra - expected.intra).sum() <= 4
    assert np.abs(found.inter - expected.inter).sum() <= 4
    assert found.separation == pytest.approx(expected.separation, abs=1e-6)
    assert (found.intra_mean, found.inter_mean) == pytest.approx((expected.intra_mean, expected.inter_mean), rel=1e-11)
