"""The nearest recordings of other patients: against loops, and whoever must not be among them."""

from __future__ import annotations

import math
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
from fake_frames import TASK, fake_representations
from fake_recordings import fake_entries
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.contracts.records import Listing
from clocs_core.errors import DataError, UnknownName
from clocs_core.inference.similar import find_patient, find_similar

# ---------------------------------------------------------------------------------------------------------------- loops


def recordings_in_loops(found):
    """The mean of the rows of each recording, by name."""
    rows = {}
    for row in range(len(found)):
        rows.setdefault(found.rows.records[found.rows.features.record[row]], []).append(
            found.rows.features.embedding[row]
        )
    return {
        name: [sum(float(one[d]) for one in some) / len(some) for d in range(len(some[0]))]
        for name, some in rows.items()
    }


def euclidean(a, b):
    return math.sqrt(sum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True)))


def cosine(a, b):
    sizes = [math.sqrt(sum(float(x) ** 2 for x in side)) for side in (a, b)]
    return 1 - sum(float(x) * float(y) for x, y in zip(a, b, strict=True)) / sizes[0] / sizes[1]


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), number=st.integers(0, 11), nearness=st.sampled_from(["euclidean", "cosine"]))
def test_neighbours_are_the_nearest_means_of_other_patients(cohort, seed, number, nearness):
    found = fake_representations(cohort, seed)
    entries = fake_entries()
    query = entries[number]
    means = recordings_in_loops(found)
    apart = {"euclidean": euclidean, "cosine": cosine}[nearness]
    others = [entry for entry in entries if entry.patient != query.patient]
    expected = sorted((apart(means[query.record], means[entry.record]), entry.record) for entry in others)
    similar = find_similar(found, query.record, "recording", nearness, 4)
    assert [one.place.record for one in similar.neighbours] == [name for _, name in expected[:4]]
    assert [one.distance for one in similar.neighbours] == pytest.approx([d for d, _ in expected[:4]], abs=1e-6)
    assert [one.rank for one in similar.neighbours] == [1, 2, 3, 4]
    assert (similar.searched, similar.patients) == (10, 5)


def test_frames_are_compared_one_by_one(cohort):
    found = fake_representations(cohort)
    similar = find_similar(found, "r2-1", "frame", "euclidean", 6, frame=2, channel="L2")
    asks = similar.query.row
    assert (found.channel_name(asks), found.cohort.evaluate.position[found.rows.frame[asks]]) == ("L2", 2)
    mine = found.rows.features.patient[asks]
    expected = sorted(
        (euclidean(found.rows.features.embedding[asks], found.rows.features.embedding[row]), row)
        for row in range(len(found))
        if found.rows.features.patient[row] != mine
    )
    assert [one.place.row for one in similar.neighbours] == [row for _, row in expected[:6]]
    for one in similar.neighbours:
        assert (one.place.channel, one.place.start) == (
            found.channel_name(one.place.row),
            found.rows.start[one.place.row],
        )


def test_a_place_says_whose_it_is(cohort):
    similar = find_similar(fake_representations(cohort), "r4-0", "recording", "euclidean", 10)
    assert len(similar.neighbours) == 10
    for place in (similar.query, *(one.place for one in similar.neighbours)):
        entry = next(entry for entry in fake_entries() if entry.record == place.record)
        assert (place.patient, place.label) == (entry.patient, TASK.classes[entry.label])
        assert place.part == cohort.split.parts[entry.patient]


def test_the_patients_own_recordings_are_never_neighbours(cohort):
    """They are the nearest of all; nobody asks who the patient is."""
    found = fake_representations(cohort)
    centre = found.rows.features.patient.astype(np.float64)[:, None] * 100
    found = fake_representations(cohort, embedding=centre + np.zeros((len(found), 3)))
    for level in ("recording", "frame"):
        similar = find_similar(found, "r3-1", level, "euclidean", 50)
        assert "p3" not in {one.place.patient for one in similar.neighbours}


def test_those_that_are_equally_near_share_a_rank(cohort):
    """In a list somebody has to stand first; the rank says that it means nothing. They are in the order of names."""
    equal = fake_representations(cohort, embedding=np.ones((len(fake_representations(cohort)), 2)))
    similar = find_similar(equal, "r0-0", "recording", "cosine", 3)
    assert [one.rank for one in similar.neighbours] == [1, 1, 1]
    assert [one.place.record for one in similar.neighbours] == ["r1-0", "r1-1", "r2-0"]
    turned = attrs.evolve(equal.rows, records=tuple(sorted(equal.rows.records, reverse=True)))
    backwards = attrs.evolve(equal, rows=turned)
    similar = find_similar(backwards, "r5-1", "recording", "cosine", 3)
    assert [one.place.record for one in similar.neighbours] == ["r0-0", "r0-1", "r1-0"]


def test_embeddings_that_are_not_finite_are_left_out(cohort):
    found = fake_representations(cohort)
    embedding = found.rows.features.embedding.copy()
    embedding[found.rows.features.record == found.rows.records.index("r1-0")] = np.nan
    embedding[np.flatnonzero(found.rows.features.record == found.rows.records.index("r0-0"))[0]] = np.inf
    broken = fake_representations(cohort, embedding=embedding)
    similar = find_similar(broken, "r0-0", "recording", "euclidean", 50)
    assert similar.searched == 9
    assert all(math.isfinite(one.distance) for one in similar.neighbours)
    with pytest.raises(DataError, match="Record 'r1-0' has no frame that can be used"):
        find_similar(broken, "r1-0", "recording", "euclidean", 5)


# ------------------------------------------------------------------------------------------------------------- mistakes


def test_an_unknown_record_answers_with_its_neighbours(cohort):
    assert find_patient(cohort, "r1-1", "tiny") == "p1"
    with pytest.raises(UnknownName, match=r"has no record 'r1-11' here\. Did you mean 'r1-1'.* The first is 'r0-0'"):
        find_patient(cohort, "r1-11", "tiny")
    with pytest.raises(UnknownName, match="Record 'r9-9' of 'tiny' was left out: no signal"):
        find_patient(cohort, "r9-9", "tiny")


def test_thousands_of_names_are_not_listed(cohort):
    many = SimpleNamespace(listing=Listing(fake_entries(80)))
    with pytest.raises(UnknownName) as raised:
        find_patient(many, "zzzzzz", "tiny")
    assert str(raised.value) == "Data set 'tiny' has no record 'zzzzzz' here. The first is 'r0-0'."


def test_a_frame_that_is_not_there_is_answered_with_those_that_are(cohort):
    found = fake_representations(cohort)
    with pytest.raises(
        DataError, match=r"has no frame 9 of any channel that can be used; it has frame 0 of L0, frame 0"
    ):
        find_similar(found, "r0-0", "frame", "euclidean", 5, frame=9)
    with pytest.raises(DataError, match=r"'r1-0' has no frame 0 of L1 that can be used; it has frame 0 of L0"):
        find_similar(found, "r1-0", "frame", "euclidean", 5, frame=0, channel="L1")  # it is flat there


def test_a_patient_alone_has_nobody_to_be_compared_with(cohort):
    found = fake_representations(cohort)
    alone = found.rows.features.take(np.flatnonzero(found.rows.features.patient == 0))
    with pytest.raises(DataError, match="There is no other patient to compare 'r0-0' with"):
        find_similar(
            attrs.evolve(found, rows=attrs.evolve(found.rows, features=alone)), "r0-0", "recording", "euclidean", 5
        )


def test_the_sentence_says_what_was_compared(cohort):
    found = fake_representations(cohort)
    assert find_similar(found, "r0-0", "recording", "euclidean", 2).sentence() == (
        "r0-0 (patient p0, a): the mean of its frames' representations, compared with 10 recordings of 5 other "
        "patients by euclidean distance."
    )
    assert (
        "the representation of a frame, compared with " in find_similar(found, "r0-0", "frame", "cosine", 2).sentence()
    )
