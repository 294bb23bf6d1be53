"""Rows of two runs can be paired exactly where they are of the same people; a mean over seeds is one draw by draw."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from clocs_core.artifacts.predictions import Predictions, read_predicted_rows, save_predictions
from clocs_core.errors import RunFolderError
from clocs_core.evaluation.pairing import predictions_at, why_not_same


def rows_of(tmp_path, record=(0, 0, 1, 2), label=(0, 0, 1, 0), people=("p1", "p1", "p0")):
    """Rows of records a, b, c; `people` are their patients."""
    record = np.array(record)
    patients = sorted(set(people))
    patient = np.array([patients.index(people[n]) for n in record])
    probability = np.tile([0.25, 0.75], (len(record), 1))
    path = tmp_path / "predictions.npz"
    rows = Predictions(probability, np.array(label), patient, record)
    save_predictions({("linear", "m", 1.0): rows}, patients, ("a", "b", "c"), path)
    return read_predicted_rows(path)


def test_rows_come_back_with_their_names(tmp_path):
    found = rows_of(tmp_path)
    assert found.record.tolist() == ["a", "a", "b", "c"]
    assert found.patient.tolist() == ["p1", "p1", "p1", "p0"]
    assert found.kind == "one_of"
    assert attrs.evolve(found, label=np.zeros((4, 2))).kind == "any_of"
    assert list(found.predicted) == [("linear", "m", 1.0)]
    (tmp_path / "predictions.npz").write_bytes(b"half")
    with pytest.raises(RunFolderError, match="holds no predictions that can be read"):
        read_predicted_rows(tmp_path / "predictions.npz")


@pytest.mark.parametrize("level", ["frame", "record"])
def test_the_same_rows_can_be_paired(tmp_path, level):
    assert why_not_same(rows_of(tmp_path), rows_of(tmp_path), level) == ""


@pytest.mark.parametrize("level", ["frame", "record"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"people": ("p1", "p1", "p9")}, "their patients are not the same (1 in both, 2 and 2 in all)"),
        (
            {"record": (0, 0, 2, 2), "label": (0, 0, 0, 0)},
            "their recordings are not the same (2 in both, 3 and 2 in all)",
        ),
        ({"people": ("p1", "p0", "p0")}, "their recordings are not the same (3 in both, 3 and 3 in all)"),
        ({"label": (0, 0, 1, 1)}, "the same rows have different labels"),
    ],
)
def test_other_people_recordings_or_labels_cannot_be_paired(tmp_path, level, change, reason):
    """A difference between scores of other patients is no difference between methods."""
    assert why_not_same(rows_of(tmp_path), rows_of(tmp_path, **change), level) == reason


def test_other_frames_of_the_same_recordings_can_be_paired_by_recording_only(tmp_path):
    """As where one run has read four leads and the other one."""
    fewer = rows_of(tmp_path, record=(0, 1, 2), label=(0, 1, 0))
    assert why_not_same(rows_of(tmp_path), fewer, "record") == ""
    assert why_not_same(rows_of(tmp_path), fewer, "frame").startswith("their frames are not the same (4 and 3 rows)")
    other_order = rows_of(tmp_path, record=(2, 0, 0, 1), label=(0, 0, 0, 1))
    assert why_not_same(rows_of(tmp_path), other_order, "record") == ""
    assert "their frames are not the same" in why_not_same(rows_of(tmp_path), other_order, "frame")


@pytest.mark.parametrize(
    ("field", "values", "said"),
    [
        ("channel", ["V1", "V1", "V1", "V1"], "their frames are not the same: they are of other channels"),
        ("start", [0, 9, 0, 0], "their frames are not the same: they begin at other samples"),
    ],
)
def test_as_many_frames_of_other_channels_or_places_are_not_the_same(tmp_path, field, values, said):
    """One lead is read in each run, and not the same one: rows of one number and order."""
    rows = attrs.evolve(rows_of(tmp_path), channel=np.array(["II"] * 4), start=np.array([0, 5, 0, 0]))
    other = attrs.evolve(rows, **{field: np.array(values)})
    assert why_not_same(rows, other, "frame").startswith(said)
    assert why_not_same(rows, other, "record") == why_not_same(rows, rows, "frame") == ""
    assert why_not_same(rows, attrs.evolve(other, **{field: None}), "frame") == ""  # an older file does not say it


def test_predictions_are_found_by_classifier_and_put_together_by_recording(tmp_path):
    rows = rows_of(tmp_path)
    frames = predictions_at(rows, "linear", "m", 1.0, "frame")
    assert frames is not None
    assert len(frames.probability) == 4
    recordings = predictions_at(rows, "linear", "m", 1.0000001, "record")  # equal with six digits
    assert recordings is not None
    assert len(recordings.probability) == 3
    assert recordings.label.tolist() == [0, 1, 0]


@pytest.mark.parametrize("asked", [("knn", "m", 1.0), ("linear", "random", 1.0), ("linear", "m", 0.5)])
def test_a_classifier_that_was_not_made_has_no_predictions(tmp_path, asked):
    assert predictions_at(rows_of(tmp_path), *asked, "frame") is None
