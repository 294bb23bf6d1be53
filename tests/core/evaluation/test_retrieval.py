"""Retrieval by nearness, against loops over every order that ties leave open."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clocs_core.evaluation import retrieval
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.retrieval import diagnoses, distances, retrieve

CPU = torch.device("cpu")
WAYS = ("same recording", "other recordings", "same diagnosis")


def rows_of(embedding, patient, record, label):
    as_numbers = [np.asarray(column, dtype=np.int64) for column in (label, patient, record)]
    return Features(np.asarray(embedding, dtype=np.float32), *as_numbers)


def clusters(patients=8, recordings=2, frames=3, spread=0.7, seed=0):
    """Rows around a point per patient, with a diagnosis per patient."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), recordings * frames)
    record = np.repeat(np.arange(patients * recordings), frames)
    centre = rng.normal(size=(patients, 4))
    return rows_of(centre[patient] + spread * rng.normal(size=(len(patient), 4)), patient, record, patient % 3)


# -------------------------------------------------------------------------------------------------- the same, in loops


def apart(a, b, nearness):
    a, b = [float(value) for value in a], [float(value) for value in b]
    if nearness == "euclidean":
        return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))
    sizes = math.sqrt(sum(x * x for x in a)), math.sqrt(sum(y * y for y in b))
    if 0.0 in sizes:
        return 1.0
    return 1 - sum(x * y for x, y in zip(a, b, strict=True)) / sizes[0] / sizes[1]


def searched(rows, query, way):
    """The rows that are searched, each with whether it is right."""
    found = []
    for other in range(len(rows)):
        stranger = rows.patient[other] != rows.patient[query]
        here = rows.record[other] == rows.record[query]
        if way == "same recording":
            right, counts = here and other != query, stranger or (here and other != query)
        elif way == "other recordings":
            right, counts = not stranger and not here, stranger or not here
        else:
            counts = stranger and rows.label[other] >= 0
            right = counts and rows.label[other] == rows.label[query]
        if counts:
            found.append((other, bool(right)))
    return found


def average_precision(ranking):
    """The mean, over right rows, of the share of right rows down to each."""
    seen, total = 0, 0.0
    for place, right in enumerate(ranking, start=1):
        if right:
            seen += 1
            total += seen / place
    return total / seen


def every_order(found, near):
    """All rankings by distance, one for each way to order rows that are equally near."""
    ties = {}
    for other, right in found:
        ties.setdefault(round(near[other], 6), []).append(right)
    groups = [ties[distance] for distance in sorted(ties)]
    for chosen in product(*(permutations(group) for group in groups)):
        yield [right for group in chosen for right in group]


def in_loops(rows, nearness, way, ks=(1, 5, 10)):
    """Mean average precision, recall at each k, and how many queries had a right row."""
    sums, queries = [0.0] * (1 + len(ks)), 0
    for query in range(len(rows)):
        found = searched(rows, query, way)
        if not any(right for _, right in found):
            continue
        queries += 1
        near = [apart(rows.embedding[query], other, nearness) for other in rows.embedding]
        orders = list(every_order(found, near))
        for ranking in orders:
            values = [average_precision(ranking), *(float(any(ranking[:k])) for k in ks)]
            sums = [old + value / len(orders) for old, value in zip(sums, values, strict=True)]
    return [total / queries if queries else math.nan for total in sums], queries


def check(rows, nearness):
    for found in retrieve(rows, nearness, CPU):
        expected, queries = in_loops(rows, nearness, found.relevant)
        assert (found.queries, found.left_out, found.rows) == (queries, len(rows) - queries, len(rows))
        assert [found.mean_average_precision, *found.recall] == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("nearness", ["euclidean", "cosine"])
@pytest.mark.parametrize("tile", [5, 128])
def test_recall_and_precision_are_those_of_a_search_in_loops(monkeypatch, nearness, tile):
    """In tiles that miss the size, no query may be lost."""
    monkeypatch.setattr(retrieval, "_TILE", tile)
    found = retrieve(clusters(), nearness, CPU)
    assert tuple(one.relevant for one in found) == WAYS
    assert {one.nearness for one in found} == {nearness}
    check(clusters(), nearness)


ties = arrays(np.float32, (7, 2), elements=st.integers(-1, 1).map(float))
ids = arrays(np.int64, 7, elements=st.integers(0, 2))


@settings(max_examples=25)
@given(ties, ids, ids, arrays(np.int64, 7, elements=st.integers(-1, 1)), st.sampled_from(["euclidean", "cosine"]))
def test_of_ties_every_order_counts_the_same(embedding, patient, visit, label, nearness):
    """A sort puts equal distances in some order; whoever comes first in the file must not profit from it."""
    check(rows_of(embedding, patient, 10 * patient + visit, label), nearness)


@settings(max_examples=15)
@given(ties, ids, st.permutations(range(7)))
def test_the_order_of_the_rows_is_in_no_number(embedding, patient, order):
    rows = rows_of(embedding, patient, 10 * patient + np.arange(7) % 2, patient % 2)
    plain, moved = retrieve(rows, "euclidean", CPU), retrieve(rows.take(np.array(order)), "euclidean", CPU)
    for one, other in zip(plain, moved, strict=True):
        numbers = [one.mean_average_precision, *one.recall]
        assert [other.mean_average_precision, *other.recall] == pytest.approx(numbers, abs=1e-12, nan_ok=True)


@settings(max_examples=15)
@given(st.integers(0, 1000), st.floats(0.01, 100))
def test_a_turn_a_shift_and_a_scale_change_nothing(seed, scale):
    """Distances are what counts; a rotation of the space keeps their order. Of cosines, a shift does not."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0]
    rows = clusters(seed=seed)
    turned = Features((scale * rows.embedding @ turn).astype(np.float32), rows.label, rows.patient, rows.record)
    shifted = Features((turned.embedding + scale).astype(np.float32), rows.label, rows.patient, rows.record)
    for nearness, other in (("euclidean", shifted), ("cosine", turned)):
        for one, two in zip(retrieve(rows, nearness, CPU), retrieve(other, nearness, CPU), strict=True):
            assert two.mean_average_precision == pytest.approx(one.mean_average_precision, abs=2e-3)


# -------------------------------------------------------------------------------------------------------- known answers


def test_one_point_for_everything_gets_what_chance_gets():
    """A collapsed encoder must not score well because a sort is stable and rows come by patient."""
    rows = clusters(patients=4, recordings=1, frames=3)
    collapsed = Features(np.ones_like(rows.embedding), rows.label, rows.patient, rows.record)
    same, other, _ = retrieve(collapsed, "euclidean", CPU)
    misses = math.comb(9, 5) / math.comb(11, 5)  # 2 right rows among 11: none of the 5 that are drawn
    assert same.recall == pytest.approx((2 / 11, 1 - misses, 1 - math.comb(9, 10) / math.comb(11, 10)))
    draws = [average_precision([place in pair for place in range(11)]) for pair in permutations(range(11), 2)]
    assert same.mean_average_precision == pytest.approx(sum(draws) / len(draws))
    assert (other.queries, other.left_out) == (0, 12)  # nobody has a second recording
    assert math.isnan(other.mean_average_precision)
    assert math.isnan(other.recall[0])


def test_perfect_clusters_are_found_perfectly():
    rows = clusters(spread=1e-4)
    same, other, _ = retrieve(rows, "euclidean", CPU)
    for found in (same, other):
        assert found.recall == (1.0, 1.0, 1.0)
        assert found.mean_average_precision == pytest.approx(1.0)


def test_a_patients_own_rows_are_no_answer_to_a_question_about_diagnosis():
    """They are the nearest, and share the diagnosis: with them, every encoder that knows patients would look clever."""
    embedding = [[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]]
    rows = rows_of(embedding, [0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 0, 0])
    _, _, found = retrieve(rows, "euclidean", CPU)
    assert found.recall[0] == 0.0  # the nearest stranger is always of the other diagnosis
    assert (found.queries, found.left_out) == (4, 2)  # nobody else has the diagnosis of patient 1


def test_the_patients_other_recordings_do_not_count_against_the_same_recording():
    """They are neither right nor wrong there; they would push right rows down."""
    embedding = [[0.0], [0.1], [0.3], [9.0]]
    same, other, _ = retrieve(rows_of(embedding, [0, 0, 0, 1], [0, 1, 0, 2], [0] * 4), "euclidean", CPU)
    assert (same.mean_average_precision, same.queries) == (1.0, 2)
    assert (other.mean_average_precision, other.queries) == (1.0, 3)


def test_rows_without_a_label_are_neither_searched_nor_asked_for_a_diagnosis():
    embedding = [[0.0], [0.1], [0.2]]
    _, _, found = retrieve(rows_of(embedding, [0, 1, 2], [0, 1, 2], [1, -1, 1]), "euclidean", CPU)
    assert (found.mean_average_precision, found.queries, found.left_out) == (1.0, 2, 1)


def test_a_diagnosis_is_a_whole_set_of_classes():
    """Of tasks with several classes at once, a row with one more of them is another diagnosis."""
    numbers = diagnoses(np.array([[1, 0], [1, 1], [1, 0], [-1, -1], [0, 0], [0, 0]]))
    assert numbers[0] == numbers[2] != numbers[1]
    assert numbers[4] == numbers[5] != numbers[0]
    assert numbers[3] == -1
    assert diagnoses(np.array([2, -1])).tolist() == [2, -1]


def test_rows_that_are_not_finite_are_left_and_none_at_all_is_no_error():
    rows = clusters()
    broken = Features(rows.embedding.copy(), rows.label, rows.patient, rows.record)
    broken.embedding[3, 1] = np.nan
    assert {one.rows for one in retrieve(broken, "euclidean", CPU)} == {len(rows) - 1}
    for found in retrieve(rows.take(np.arange(0)), "cosine", CPU):
        assert (found.queries, found.left_out, found.rows) == (0, 0, 0)


def test_more_rows_than_fit_are_thinned_by_whole_patients(monkeypatch):
    """A patient with half of its rows would be harder to find than it is."""
    rows = clusters(patients=10)
    monkeypatch.setattr(retrieval, "ROWS", 30)
    kept = clusters(patients=10).take(np.flatnonzero(rows.patient % 2 == 0))
    assert retrieve(rows, "euclidean", CPU) == retrieve(kept, "euclidean", CPU)


def test_fewer_questions_search_all_rows_still():
    rows = clusters()
    found = retrieve(rows, "euclidean", CPU, most_queries=5)[0]
    assert (found.queries, found.rows) == (5, len(rows))


def test_distances_of_equal_rows_are_nothing_far_from_the_origin():
    """By a product of matrices they would be rounding: some of it no root of which is a number, none of it a tie."""
    x = 1e3 + torch.randn(61, 129, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    twice = torch.cat([x, x])
    for nearness in ("euclidean", "cosine"):
        found = distances(x, twice, nearness)
        assert torch.equal(found[:, :61].diagonal(), torch.zeros(61))
        assert torch.equal(found[:, 61:].diagonal(), torch.zeros(61))
        assert found.isfinite().all()


def test_distances_are_those_of_loops():
    x = np.random.default_rng(3).normal(size=(6, 5)).astype(np.float32)
    x[2] = 0
    for nearness in ("euclidean", "cosine"):
        found = distances(torch.from_numpy(x), torch.from_numpy(x), nearness).numpy()
        expected = [[apart(a, b, nearness) for b in x] for a in x]
        assert found == pytest.approx(np.array(expected), abs=1e-6)


def test_progress_is_told_tile_by_tile(monkeypatch):
    monkeypatch.setattr(retrieval, "_TILE", 20)
    told = []
    retrieve(clusters(), "euclidean", CPU, lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.cuda
def test_a_gpu_finds_what_the_processor_finds():
    rows = clusters(patients=30, frames=5)
    for nearness in ("euclidean", "cosine"):
        here, there = (retrieve(rows, nearness, device) for device in (CPU, torch.device("cuda")))
        for one, two in zip(here, there, strict=True):
            assert (two.queries, two.recall) == (one.queries, pytest.approx(one.recall, abs=1e-9))
            assert two.mean_average_precision == pytest.approx(one.mean_average_precision, abs=1e-9)


def test_numbers_are_no_diagnoses():
    """Two patients of 61 years have no diagnosis in common."""
    assert diagnoses(np.array([61.0, 61.0, np.nan], dtype=np.float32)).tolist() == [-1, -1, -1]
