"""Patients are found by another recording of theirs, as loops over all recordings find them."""

import math

import attrs
import numpy as np
import pytest
import torch

from clocs_core.errors import DataError
from clocs_core.evaluation.bootstrap import bootstrap
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.identification import (
    KS,
    RECALLS,
    identify,
    identify_by_chance,
    line_up,
    refuse_single_recordings,
)

CPU = torch.device("cpu")


def recordings(patients, seed=0, spread=1.0):
    """Recordings of these patients, one per row; recordings of a patient resemble each other."""
    rng = np.random.default_rng(seed)
    patient = np.array(patients, dtype=np.int64)
    centre = rng.normal(size=(int(patient.max()) + 1, 6))
    z = (centre[patient] + spread * rng.normal(size=(len(patient), 6))).astype(np.float32)
    return Features(z, np.full(len(patient), -1), patient, np.arange(len(patient)))


def names_of(rows):
    """Names in an order that is not that of the rows."""
    return [f"r{len(rows) - number:03d}" for number in range(len(rows))]


def recall_by_loops(rows, names, k):
    """The share of probes for which one of the k gallery recordings of largest cosine is of their patient."""
    mine = {}
    for row in range(len(rows)):
        mine.setdefault(rows.patient[row], []).append((names[rows.record[row]], row))
    mine = {patient: sorted(some) for patient, some in mine.items() if len(some) > 1}
    hits = []
    for patient, some in mine.items():
        for _, probe in some[1:]:
            cosines = []
            for other, theirs in mine.items():
                a, b = rows.embedding[probe].astype(float), rows.embedding[theirs[0][1]].astype(float)
                dot = sum(x * y for x, y in zip(a, b, strict=True))
                cosines.append((dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b)), other))
            nearest = [other for _, other in sorted(cosines, reverse=True)[:k]]
            hits.append(patient in nearest)
    return sum(hits) / len(hits)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("tile", [1024, 4])
def test_recall_is_that_of_loops_over_probes_and_gallery(monkeypatch, seed, tile):
    monkeypatch.setattr("clocs_core.evaluation.identification._TILE", tile)
    rows = recordings([0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 4, 4, 5, 6, 6, 7, 7, 8, 8, 9, 9], seed)
    names = names_of(rows)
    found = identify(rows, names, CPU)
    weight = np.ones(len(found.label))
    for metric, k in zip(RECALLS, KS, strict=True):
        expected = recall_by_loops(rows, names, k)
        assert 0 < expected < 1
        assert metric.score(found.probability, found.label, weight) == pytest.approx(expected)
        (draw,) = metric.score_draws(found.probability, found.label, weight[None])
        assert draw == pytest.approx(expected)


def test_the_first_recording_by_name_is_the_gallery_and_single_recordings_are_left_out():
    rows = recordings([3, 1, 3, 0, 1, 3])
    lineup = line_up(rows, ["c", "f", "a", "b", "e", "d"])
    assert lineup.gallery.tolist() == [2, 4]  # "a" of patient 3, "e" of patient 1
    assert sorted(zip(lineup.probes.tolist(), lineup.right.tolist(), strict=True)) == [(0, 0), (1, 1), (5, 0)]
    found = identify(rows, ["c", "f", "a", "b", "e", "d"], CPU)
    assert sorted(found.record.tolist()) == [0, 1, 5]
    assert set(found.patient.tolist()) == {1, 3}


def test_the_interval_is_over_patients():
    """Ten probes of one patient are one draw, not ten."""
    rows = recordings([0] * 11 + [1, 1, 2, 2, 3, 3], seed=2)
    found = identify(rows, names_of(rows), CPU)
    interval = bootstrap(found, RECALLS[0], 50, 3)
    drawn = np.random.default_rng(3)
    for value in interval.draws:
        chosen = drawn.integers(0, 4, 4).tolist()
        weight = [chosen.count(patient) for patient in found.patient]
        hits = sum(w * p for w, p in zip(weight, found.probability[:, 0], strict=True))
        assert value == pytest.approx(hits / sum(weight))


def test_an_encoder_that_tells_nobody_apart_scores_exactly_as_chance():
    rows = recordings([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6])
    same = attrs.evolve(rows, embedding=np.ones_like(rows.embedding))
    found, chance = identify(same, names_of(rows), CPU), identify_by_chance(rows, names_of(rows))
    np.testing.assert_allclose(found.probability, chance.probability)
    np.testing.assert_allclose(chance.probability, [[1 / 7, 5 / 7]] * 7)


def test_a_gallery_of_fewer_than_k_patients_always_has_the_right_one():
    rows = recordings([0, 0, 1, 1])
    for found in (identify(rows, names_of(rows), CPU), identify_by_chance(rows, names_of(rows))):
        assert found.probability[:, 1].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("patients", "said"), [([0, 1, 2], "0 of the 3 test patients of 'd' have"), ([0, 0, 1], "1 of the 2 test .* has")]
)
def test_patients_with_one_recording_each_are_refused(patients, said):
    rows = recordings(patients)
    with pytest.raises(DataError, match=said + " several. Choose another"):
        refuse_single_recordings(rows, names_of(rows), "d", "test")
    refuse_single_recordings(recordings([0, 0, 1, 1]), [*names_of(rows), "x"], "d", "test")


def test_embeddings_that_are_not_finite_are_refused():
    rows = recordings([0, 0, 1, 1])
    rows.embedding[2, 0] = np.nan
    with pytest.raises(DataError, match="not finite"):
        identify(rows, names_of(rows), CPU)
