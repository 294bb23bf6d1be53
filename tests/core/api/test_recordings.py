"""Recordings in memory: any sensible shape is taken, anything else is refused by the name of its argument."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas
import pytest

import clocs_core as clocs
from clocs_core.plugins.session import installed_session

RATE = 100.0


def waves(count: int = 12, channels: int = 2, samples: int = 300) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, channels, samples))


def listed(data: clocs.Recordings) -> clocs.Listing:
    offer = data.add_to(installed_session()).catalogue.datasets.get("recordings").offer
    return offer.scan(Path(), offer.tasks[0], None)


def loaded(data: clocs.Recordings, row: int) -> clocs.Record:
    offer = data.add_to(installed_session()).catalogue.datasets.get("recordings").offer
    return offer.load(listed(data).entries[row], None)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_masked_samples_are_missing_ones(one_by_one: bool) -> None:
    """A run learnt whatever lay under the mask, such as 9999, and min-max divided by it."""
    masked = np.ma.MaskedArray(waves(), mask=np.zeros((12, 2, 300), dtype=bool))
    masked[3, 1, 10:20] = np.ma.masked
    masked.data[3, 1, 10:20] = 9999
    x = list(masked) if one_by_one else masked
    data = clocs.Recordings(x, patients=range(12), sampling_rate=RATE)
    missing = np.isnan(loaded(data, 3).samples)
    assert missing[1, 10:20].all()
    assert missing.sum() == 10


def test_an_array_becomes_entries_and_records() -> None:
    x = waves()
    data = clocs.Recordings(
        x, patients=[n // 2 for n in range(12)], labels=["a", "b"] * 6, sampling_rate=RATE, channels=["II", "V1"]
    )
    entries = listed(data).entries
    assert [entry.patient for entry in entries[:4]] == ["0", "0", "1", "1"]
    assert [entry.label for entry in entries[:4]] == [0, 1, 0, 1]
    record = loaded(data, 3)
    assert (record.channels, record.sampling_rate, record.label) == (("II", "V1"), RATE, 1)
    np.testing.assert_array_equal(record.samples, x[3])


def test_a_list_of_unequal_lengths_is_taken_and_one_channel_needs_no_axis() -> None:
    data = clocs.Recordings([np.arange(400.0), np.arange(300.0)], patients="ab", sampling_rate=[100, 50])
    assert [loaded(data, row).samples.shape for row in (0, 1)] == [(1, 400), (1, 300)]
    assert [loaded(data, row).sampling_rate for row in (0, 1)] == [100.0, 50.0]
    assert len(data) == 2


@pytest.mark.parametrize(
    ("labels", "classes", "kind", "first"),
    [
        (["x", None, "y"], None, "one_of", [0, None, 1]),
        ([1, 2, float("nan")], None, "one_of", [0, 1, None]),
        ([["x"], [], ["x", "y"]], None, "any_of", [{0}, set(), {0, 1}]),
        (np.array([[0, 1], [0, 0], [1, 1]]), ["p", "q"], "any_of", [{1}, set(), {0, 1}]),
        (["b", "a", "b"], ["b", "a"], "one_of", [0, 1, 0]),
        (None, None, "one_of", [None, None, None]),
        (np.array(["x", np.nan, "y"]), None, "one_of", [0, None, 1]),  # NumPy makes it the text nan
        (["x", "", "y"], None, "one_of", [0, None, 1]),
        (pandas.Series(["x", None, "y"], dtype="string"), None, "one_of", [0, None, 1]),
        (pandas.Series([1, None, 2], dtype="Int64"), None, "one_of", [0, None, 1]),
    ],
)
def test_labels_are_one_class_or_several_or_unknown(labels, classes, kind, first) -> None:
    data = clocs.Recordings(waves(3), patients="abc", labels=labels, classes=classes, sampling_rate=RATE)
    assert data.task.kind == kind
    assert [entry.label for entry in listed(data).entries] == first


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"x": np.zeros(5)}, r"x has the shape \(5,\), expected \(recording, channel, sample\)"),
        ({"x": []}, "x holds no recording"),
        ({"x": [np.zeros((2, 9)), np.zeros((3, 9))]}, "Recording 1 of x has 3 channels and the first has 2"),
        ({"x": np.full((3, 2, 9), "a")}, "Recording 0 of x has .* the type <U1, expected numbers"),
        ({"patients": ["a", None, "b"]}, "`patients` holds None: every recording needs the id"),
        ({"patients": [1.0, np.nan, 2.0]}, "`patients` holds nan: every recording needs"),
        ({"patients": ["a", " ", "b"]}, "`patients` holds ' ': every recording needs"),
        ({"patients": "ab"}, "`patients` has 2 values for 3 recordings"),
        ({"labels": [1, 2]}, "`labels` has 2 values for 3 recordings"),
        ({"labels": ["a", "b", "c"], "classes": ["a", "b"]}, "`labels` has the class 'c', which is not among"),
        ({"labels": np.full((3, 2), 7)}, r"`labels` has the shape \(3, 2\), expected \(3, 2\) of 0 and 1"),
        ({"patients": ["a", "nan", "b"]}, "`patients` holds 'nan': every recording needs"),
        ({"patients": ["a", pandas.NA, "b"]}, "`patients` holds <NA>: every recording needs"),
        ({"x": waves(3).transpose(0, 2, 1)}, r"x would be recordings of \d+ channels with 2 samples"),
        ({"x": [one.T for one in waves(3)]}, r"x would be recordings of \d+ channels with 2 samples"),
        ({"channels": ["II"]}, "`channels` names II, and x has 2 channels"),
        ({"channels": ["II", "II"]}, "`channels` names II, II, and x has 2 channels"),
        ({"names": ["r", "r", "s"]}, "`names` has a name twice"),
        ({"sampling_rate": 0}, "`sampling_rate` must be a positive number of Hz"),
        ({"sampling_rate": [100, 100]}, "`sampling_rate` must be a positive number of Hz, or one for each"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_argument(given, problem) -> None:
    arguments = {"x": waves(3), "patients": "abc", "sampling_rate": RATE} | given
    with pytest.raises(clocs.ClocsError, match=problem):
        clocs.Recordings(arguments.pop("x"), **arguments)


def test_a_patient_is_the_same_as_a_whole_number_of_any_type() -> None:
    """A table with a missing cell somewhere has its ids as floats: two ids would put one person in two parts."""
    data = clocs.Recordings(waves(4), patients=[7, 7.0, np.float64(7), np.int64(7)], sampling_rate=RATE)
    assert set(data.patients) == {"7"}


def test_many_channels_of_few_samples_are_taken_where_they_are_named() -> None:
    """A second of an EEG cap."""
    named = [f"E{n}" for n in range(128)]
    data = clocs.Recordings(np.ones((3, 128, 100)), patients="abc", channels=named, sampling_rate=RATE)
    assert len(data.channels) == 128


def test_the_parts_can_be_given_for_each_recording() -> None:
    parts = ["train"] * 6 + ["validation"] * 3 + ["test"] * 3
    data = clocs.Recordings(waves(12), patients=[n // 3 for n in range(12)], parts=parts, sampling_rate=RATE)
    assert listed(data).parts == {"0": "train", "1": "train", "2": "validation", "3": "test"}
    with pytest.raises(clocs.ClocsError, match="Patient '0' is in two parts"):
        clocs.Recordings(waves(3), patients=[0, 0, 1], parts=["train", "test", "val"], sampling_rate=RATE)
    with pytest.raises(clocs.ClocsError, match="`parts` has 2 values for 3 recordings"):
        clocs.Recordings(waves(3), patients="abc", parts=["train", "test"], sampling_rate=RATE)


def test_measurements_are_not_made_classes() -> None:
    many = np.random.default_rng(0).normal(size=50)
    with pytest.raises(clocs.ClocsError, match=r"`labels` has 50 different numbers .* `numbers=True` predicts them"):
        clocs.Recordings(waves(50), patients=range(50), labels=many, sampling_rate=RATE)
    grades = clocs.Recordings(waves(50), patients=range(50), labels=np.arange(50) % 5, sampling_rate=RATE)
    assert len(grades.task.classes) == 5
    named = clocs.Recordings(waves(50), patients=range(50), labels=[f"c{n}" for n in range(50)], sampling_rate=RATE)
    assert len(named.task.classes) == 50


@pytest.mark.parametrize(("samples", "frame", "source"), [(5000, 2500, None), (1000, 2500, 500), (301, 2500, 150)])
def test_short_recordings_are_stretched_to_two_frames(samples, frame, source) -> None:
    """The paper's encoder reads 2,500 samples, and 10 s at 100 Hz are 1,000."""
    data = clocs.Recordings(waves(3, 1, samples), patients="abc", sampling_rate=RATE)
    offer = data.add_to(installed_session()).catalogue.datasets.get("recordings").offer
    assert (offer.framing(2).frame_samples, offer.framing(2).source_samples) == (frame, source)
    assert offer.framing(1) == offer.framing(2)


def test_other_samples_have_another_digest_and_copies_the_same() -> None:
    """Prepared frames are found by it: frames of other recordings must never be taken for these."""
    first, second = (clocs.Recordings(x, patients="abc", sampling_rate=RATE) for x in (waves(3), waves(3) + 1e-12))
    copy = pickle.loads(pickle.dumps(first))
    assert first.settings()["dataset.digest"] == copy.settings()["dataset.digest"]
    assert first.settings()["dataset.digest"] != second.settings()["dataset.digest"]
    assert first.settings()["data.data_root"] != copy.settings()["data.data_root"]


def test_the_folder_of_frames_goes_with_the_object() -> None:
    data = clocs.Recordings(waves(3), patients="abc", sampling_rate=RATE)
    folder = data.settings()["data.data_root"]
    assert folder.is_dir()
    del data
    assert not folder.exists()


def test_an_installed_data_set_is_checked_when_it_is_named() -> None:
    assert clocs.dataset("demo", patients=20, split_seed=3).settings() == {
        "dataset.patients": 20,
        "data.split_seed": 3,
    }
    with pytest.raises(clocs.UnknownName, match=r"No dataset 'demoo'\. Did you mean 'demo'"):
        clocs.dataset("demoo")
    with pytest.raises(clocs.SettingsError, match=r"'dataset' has no option 'patiens'\. Did you mean 'patients'"):
        clocs.dataset("demo", patiens=20)


@pytest.mark.parametrize(
    ("labels", "message"),
    [(None, "needs `labels`"), (["old", 3.0], "holds 'old': a label of a number task is a finite int or float")],
)
def test_numbers_that_are_none_are_refused(labels, message):
    with pytest.raises(clocs.DataError, match=message):
        clocs.Recordings(np.zeros((2, 100)), patients=[0, 1], labels=labels, sampling_rate=100, numbers=True)


def test_numbers_may_be_missing():
    found = clocs.Recordings(
        np.zeros((3, 100)), patients=[0, 1, 2], labels=[61.5, np.nan, None], sampling_rate=100, numbers=True
    )
    assert found.task == clocs.Task("label", kind="number")
    assert found._labels == (61.5, None, None)
