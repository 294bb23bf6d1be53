"""Predictions as tables: a recording is the mean of its frames, and every kind of file has the same numbers."""

from __future__ import annotations

import csv
import json

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.contracts.records import TOGETHER, Task
from clocs_core.inference.predicted import Predicted, as_level
from clocs_core.report.predicted import save_predicted, shown_rows

CLASSES = ("sinus, normal", "other")


def predicted(record, probability, classes=CLASSES, channel=None):
    record = np.array(record, dtype=np.int64)
    return Predicted(
        level="frame",
        task=Task("rhythm", classes, "any_of"),
        probability=np.array(probability, dtype=np.float64),
        record=record,
        patient=record // 2,
        channel=np.zeros_like(record) if channel is None else np.array(channel),
        start=np.arange(len(record)) * 10,
        records=tuple(f"r{n}" for n in range(10)),
        patients=tuple(f"p{n}" for n in range(5)),
        channels=("II", "V2"),
    )


FRAMES = predicted([3, 3, 1], [[0.25, 0.5], [0.75, 0.0], [0.125, 1.0]], channel=[0, 1, 1])


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_the_probability_of_a_recording_is_the_mean_over_its_frames(rows):
    found = as_level(predicted([r for r, *_ in rows], [p for _, *p in rows]), "record")
    expected = {}
    for record, *values in rows:
        expected.setdefault(record, []).append(values)
    assert found.record.tolist() == sorted(expected)
    for record, patient, probability in zip(found.record, found.patient, found.probability, strict=True):
        for column in range(2):
            values = [one[column] for one in expected[record]]
            assert probability[column] == pytest.approx(sum(values) / len(values), abs=1e-12)
        assert patient == record // 2


def test_a_row_says_what_it_is_of():
    assert {name: list(one) for name, one in FRAMES.columns().items()} == {
        "record": ["r3", "r3", "r1"],
        "patient": ["p1", "p1", "p0"],
        "channel": ["II", "V2", "V2"],
        "start": [0, 10, 20],
    }
    assert list(as_level(FRAMES, "record").columns()) == ["record", "patient"]
    at_once = attrs.evolve(FRAMES, channel=np.full(3, TOGETHER))
    assert list(at_once.columns()["channel"]) == ["all"] * 3


def test_every_kind_of_file_has_the_same_rows(tmp_path):
    found = as_level(FRAMES, "record")
    for ending in ("csv", "npz", "json"):
        save_predicted(found, {"task": "rhythm"}, tmp_path / f"p.{ending}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.csv", "p.json", "p.npz"]
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert list(rows[0]) == ["record", "patient", *CLASSES]
    held = json.loads((tmp_path / "p.json").read_text())
    assert (held["schema"], held["level"], held["task"], held["classes"]) == (1, "record", "rhythm", list(CLASSES))
    with np.load(tmp_path / "p.npz", allow_pickle=False) as file:
        assert json.loads(str(file["about"])) == {"schema": 1, "level": "record", "task": "rhythm"}
        assert list(file["classes"]) == list(CLASSES)
        assert set(file.files) == {"probability", "classes", "about", "record", "patient"}
        for number, (row, other) in enumerate(zip(rows, held["rows"], strict=True)):
            assert row["record"] == other["record"] == file["record"][number]
            assert row["patient"] == other["patient"] == file["patient"][number]
            for column, name in enumerate(CLASSES):
                assert float(row[name]) == other["probability"][name] == file["probability"][number, column]


def test_frames_are_written_with_channel_and_place(tmp_path):
    save_predicted(FRAMES, {}, tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines() == [
        'record,patient,channel,start,"sinus, normal",other',
        "r3,p1,II,0,0.25,0.5",
        "r3,p1,V2,10,0.75,0",
        "r1,p0,V2,20,0.125,1",
    ]


def test_a_class_that_is_called_as_another_column_has_a_column_of_its_own(tmp_path):
    save_predicted(predicted([0], [[0.5, 0.5]], ("patient", "x")), {}, tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines()[0] == "record,patient,channel,start,class patient,x"


def test_small_probabilities_stay_more_than_nothing(tmp_path):
    save_predicted(predicted([0], [[1.25e-9, 0.5]]), {}, tmp_path / "p.csv")
    assert "1.25e-09" in (tmp_path / "p.csv").read_text()


def test_a_terminal_shows_the_first_rows_and_of_many_classes_the_likeliest():
    headings, rows = shown_rows(FRAMES, 2)
    assert headings == ("record", "patient", "channel", "start", *CLASSES)
    assert rows == (("r3", "p1", "II", "0", "0.250", "0.500"), ("r3", "p1", "V2", "10", "0.750", "0.000"))
    many = predicted([0], [[0.1, 0.2, 0.9, 0.2, 0.0, 0.0, 0.3]], tuple("abcdefg"))
    headings, rows = shown_rows(as_level(many, "record"), 5)
    assert headings == ("record", "patient", "most likely")
    assert rows == (("r0", "p0", "c 0.900, g 0.300, b 0.200"),)


def test_a_spreadsheet_computes_no_name_of_a_csv(tmp_path):
    """Names of patients and classes come from files; a negative number among them stays one."""
    found = attrs.evolve(
        predicted([0, 2], [[0.5, 0.25], [1e-9, 0.5]], ("=HYPERLINK(A1)", "@x")),
        records=("+r", "r", "-5"),
        patients=("=1+1", "-p"),
    )
    save_predicted(found, {}, tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines() == [
        "record,patient,channel,start,'=HYPERLINK(A1),'@x",
        "'+r,'=1+1,II,0,0.5,0.25",
        "-5,'-p,II,10,1e-09,0.5",
    ]
