"""Ids and labels of any type and form, and one sentence for everything that a stranger can get wrong."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core import DataError, DataNotFound, Entry, Task
from clocs_core.plan.layers import Assignment, overlaid
from clocs_core.settings.options import structure
from clocs_plugins.arrays import ArraysOptions, clocs_datasets, load, scan

ONE, MANY, _ = clocs_datasets()[0].tasks
SIGNAL = np.random.default_rng(0).normal(size=(4, 100)).astype(np.float32)
AT_125 = ArraysOptions(sampling_rate=125.0)


@pytest.fixture
def x(tmp_path: Path) -> Path:
    """Four recordings of one channel, without ids."""
    np.save(tmp_path / "x.npy", SIGNAL)
    return tmp_path / "x.npy"


def patients(root: Path, table: Path | str, **more: Any) -> list[str]:
    listing = scan(root, ONE, attrs.evolve(AT_125, patients=str(table), **more))
    return [entry.patient for entry in listing.entries]


# ------------------------------------------------------------------------------------------------------------------ ids


@pytest.mark.parametrize(
    "text",
    [
        "12\n12\n13\n007\n",
        "patient\n12\n12\n13\n007\n",
        "Patient_ID\n12.0\n12.0\n13.0\n007\n",
        "age,subject\n40,12\n40,12\n41,13\n50,007\n",
        "age;id\n40;12\n40;12\n41;13\n50;007\n",
        '"patient"\r\n"12"\r\n"12"\r\n"13"\r\n"007"\r\n',
    ],
)
def test_ids_in_a_table_are_text_and_whole_numbers_have_no_point(x: Path, tmp_path: Path, text: str):
    (tmp_path / "ids.csv").write_text(text, encoding="utf-8-sig", newline="")
    assert patients(x, tmp_path / "ids.csv") == ["12", "12", "13", "007"]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (np.array([1, 1, 2, -3]), ["1", "1", "2", "-3"]),
        (np.array([1.0, 1.0, 2.5, 1e16]), ["1", "1", "2.5", "10000000000000000"]),
        (np.array(["a", "a", "b", "ü"]), ["a", "a", "b", "ü"]),
        (np.array([b"a", b"a", b"b", b"c"]), ["a", "a", "b", "c"]),
    ],
)
def test_ids_of_any_type_can_be_an_array(x: Path, tmp_path: Path, ids, expected: list[str]):
    np.save(tmp_path / "ids.npy", ids)
    assert patients(x, tmp_path / "ids.npy") == expected
    np.savez(tmp_path / "both.npz", x=SIGNAL, patients=ids, fs=125)
    assert [entry.patient for entry in scan(tmp_path / "both.npz", ONE, ArraysOptions()).entries] == expected


def test_ids_are_a_line_each_in_a_text_file(x: Path, tmp_path: Path):
    (tmp_path / "ids.txt").write_text("a b\na b\nc\nd\n")
    assert patients(x, tmp_path / "ids.txt") == ["a b", "a b", "c", "d"]


def test_without_ids_every_recording_is_a_patient_and_a_note_says_so(x: Path):
    listing = scan(x, ONE, AT_125)
    assert [entry.patient for entry in listing.entries] == ["x[0]", "x[1]", "x[2]", "x[3]"]
    assert "each recording counts as one patient" in listing.notes[0]
    assert {entry.label for entry in listing.entries} == {None}
    assert listing.task is not None
    assert listing.task.classes == ()


def test_files_side_by_side_get_their_patients_from_a_table(tmp_path: Path):
    for name in ("r1", "r2", "r10", "r11"):
        np.save(tmp_path / f"{name}.npy", SIGNAL[0])
    (tmp_path / "ids.csv").write_text("file,patient,label\nr10,7,b\nr1.npy,7,a\nr2,8,\ngone,9,a\n")
    table = str(tmp_path / "ids.csv")
    listing = scan(tmp_path, ONE, attrs.evolve(AT_125, patients=table, labels=table))
    assert [(one.record, one.patient, one.label) for one in listing.entries] == [
        ("r1.npy", "7", 0),
        ("r2.npy", "8", None),
        ("r10.npy", "7", 1),
    ]
    assert [(drop.record, drop.reason) for drop in listing.drops] == [("r11.npy", "not in the table of patients")]
    assert "1 of 4 files in ids.csv are not there." in listing.notes


# --------------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("labels", "classes", "codes"),
    [
        (np.array([10, 9, 10, 9]), ("9", "10"), [1, 0, 1, 0]),
        (np.array([1.0, np.nan, 0.0, 1.0]), ("0", "1"), [1, None, 0, 1]),
        (np.array([True, False, True, True]), ("False", "True"), [1, 0, 1, 1]),
        (np.array(["AF", "", "NA", "SR"]), ("AF", "SR"), [0, None, None, 1]),
    ],
)
def test_classes_of_any_type_are_sorted_as_people_do(x: Path, tmp_path: Path, labels, classes, codes):
    np.save(tmp_path / "y.npy", labels)
    listing = scan(x, ONE, attrs.evolve(AT_125, labels=str(tmp_path / "y.npy")))
    assert listing.task is not None
    assert (listing.task.name, listing.task.kind, listing.task.classes) == ("label", "one_of", classes)
    assert [entry.label for entry in listing.entries] == codes


def test_several_classes_of_a_recording_are_findings(x: Path, tmp_path: Path):
    (tmp_path / "y.csv").write_text("label\nAF; PVC\nAF\n\nPVC|x\n")
    options = attrs.evolve(AT_125, labels=str(tmp_path / "y.csv"))
    listing = scan(x, MANY, options)
    assert listing.task is not None
    assert (listing.task.kind, listing.task.classes) == ("any_of", ("AF", "PVC", "PVC|x"))
    assert [entry.label for entry in listing.entries] == [frozenset({0, 1}), frozenset({0}), None, frozenset({2})]
    listing = scan(x, MANY, attrs.evolve(options, label_separator="|"))
    assert listing.entries[3].label == frozenset({2, 3})


@pytest.mark.parametrize(
    ("labels", "label", "mark"),
    [
        (["slow", "fast;odd", "fast", "odd"], "fast;odd", ";"),
        (["slow", "fast; odd", "slow", "slow"], "fast; odd", ";"),
        (["odd", "fast|odd", "fast", "slow"], "fast|odd", "|"),
        (["odd", "fast + odd", "slow", "slow"], "fast + odd", "+"),
    ],
)
def test_several_classes_in_one_label_are_not_made_a_class(x: Path, tmp_path: Path, labels, label, mark):
    """Each combination would be a class of its own, and every score would be of other classes than the user has."""
    (tmp_path / "y.txt").write_text("\n".join(labels) + "\n")
    options = attrs.evolve(AT_125, labels=str(tmp_path / "y.txt"))
    text = fails(x, options)
    assert (
        f"The label {label!r} looks like 2 classes of one recording, fast and odd, and the task 'label' would" in text
    )
    assert f"With `task='findings'` and `label_separator={mark!r}` a recording can have several classes" in text
    findings = scan(x, MANY, attrs.evolve(options, label_separator=mark)).task
    names = scan(x, ONE, attrs.evolve(options, label_separator="")).task
    assert findings is not None
    assert names is not None
    assert (label in findings.classes, label in names.classes) == (False, True)


def test_a_mark_within_a_name_is_part_of_the_name(x: Path, tmp_path: Path):
    (tmp_path / "y.txt").write_text("I/II block\nsinus, slow\nsinus, fast\nI/II block\n")
    listing = scan(x, ONE, attrs.evolve(AT_125, labels=str(tmp_path / "y.txt")))
    assert listing.task is not None
    assert listing.task.classes == ("I/II block", "sinus, fast", "sinus, slow")


def test_labels_may_belong_to_patients(x: Path, tmp_path: Path):
    (tmp_path / "ids.csv").write_text("1\n1\n2\n3\n")
    (tmp_path / "y.csv").write_text("patient,label\n1,a\n2,b\n")
    options = attrs.evolve(AT_125, patients=str(tmp_path / "ids.csv"), labels=str(tmp_path / "y.csv"))
    assert [entry.label for entry in scan(x, ONE, options).entries] == [0, 0, 1, None]


def own_patients(tmp_path: Path) -> Path:
    """Four recordings whose file names their patients."""
    np.savez(tmp_path / "own.npz", x=SIGNAL, patient=np.array(["1", "2", "3", "4"]), sampling_rate=125)
    return tmp_path / "own.npz"


def test_a_table_that_names_patients_is_matched_by_them_in_any_order(tmp_path: Path):
    """By position, a label would go to another person, and the score would be that of chance."""
    (tmp_path / "y.csv").write_text("patient,label\n3,a\n1,b\n4,a\n2,b\n")
    listing = scan(own_patients(tmp_path), ONE, ArraysOptions(labels=tmp_path / "y.csv"))
    assert [(entry.patient, entry.label) for entry in listing.entries] == [("1", 1), ("2", 1), ("3", 0), ("4", 0)]
    (tmp_path / "y.csv").write_text("patient,label\n1,b\n2,b\n3,a\n3,b\n")
    assert "y.csv has both 'a' and 'b' for '3'" in fails(
        own_patients(tmp_path), ArraysOptions(labels=tmp_path / "y.csv")
    )


def test_patients_without_a_label_are_told(tmp_path: Path):
    (tmp_path / "y.csv").write_text("participant_id\tdiagnosis\tage\n1\tb\t30\n2\tn/a\t40\n")
    options = ArraysOptions(labels=tmp_path / "y.csv", label_column="Diagnosis")
    listing = scan(own_patients(tmp_path), ONE, options)
    assert [entry.label for entry in listing.entries] == [0, None, None, None]
    assert "2 of 4 patients are not in y.csv, such as '3'." in listing.notes


def test_a_table_of_other_patients_is_refused(tmp_path: Path):
    (tmp_path / "y.csv").write_text("patient,label\nsub-1,a\nsub-2,b\n")
    said = fails(own_patients(tmp_path), ArraysOptions(labels=tmp_path / "y.csv"))
    assert "y.csv names none of the patients; it has 'sub-1', there is '1'." in said
    (tmp_path / "y.csv").write_text("id,label\n10,a\n11,b\n12,a\n13,a\n")  # ids of rows
    listing = scan(own_patients(tmp_path), ONE, ArraysOptions(labels=tmp_path / "y.csv"))
    assert [entry.label for entry in listing.entries] == [0, 1, 0, 0]
    said = "y.csv names other ids than the patients here: its rows are taken in the order of the recordings."
    assert said in listing.notes
    (tmp_path / "y.csv").write_text("id,label\n0,a\n1,b\n2,a\n3,a\n")  # some are those of patients by chance
    listing = scan(own_patients(tmp_path), ONE, ArraysOptions(labels=tmp_path / "y.csv"))
    assert [entry.label for entry in listing.entries] == [0, 1, 0, 0]
    (tmp_path / "y.csv").write_text("id,label\n4,a\n3,b\n2,a\n1,a\n")  # the patients, in another order
    listing = scan(own_patients(tmp_path), ONE, ArraysOptions(labels=tmp_path / "y.csv"))
    assert [entry.label for entry in listing.entries] == [0, 0, 1, 0]


def test_a_table_can_divide_the_patients(tmp_path: Path):
    """By patient in any order, or by file; a patient without a part is refused."""
    table = tmp_path / "split.csv"
    table.write_text("patient,part\n4,test\n1,train\n2,train\n3,val\n9,test\n")
    listing = scan(own_patients(tmp_path), ONE, ArraysOptions(parts=table))
    assert listing.parts == {"1": "train", "2": "train", "3": "validation", "4": "test"}
    table.write_text("patient,part\n1,train\n2,train\n3,val\n")
    said = fails(own_patients(tmp_path), ArraysOptions(parts=table))
    assert "`parts=FILE`: split.csv has no part for patient '4'; give every patient one." in said
    table.write_text("patient,part\n1,train\n2,train\n3,val\n4,other\n")
    assert "Patient '4' is in part 'other'" in fails(own_patients(tmp_path), ArraysOptions(parts=table))
    table.write_text("patient,who\n1,train\n")
    assert fails(own_patients(tmp_path), ArraysOptions(parts=table)).endswith("call one of them 'part'.")


def test_a_table_of_parts_among_the_recordings_is_no_recording(tmp_path: Path):
    for name in "abc":
        (tmp_path / name).mkdir()
        np.savetxt(tmp_path / name / "1.csv", SIGNAL[0][:, None], delimiter=",")
    (tmp_path / "split.csv").write_text("patient,part\na,train\nb,val\nc,test\n")
    listing = scan(tmp_path, ONE, attrs.evolve(AT_125, parts=tmp_path / "split.csv"))
    assert listing.parts == {"a": "train", "b": "validation", "c": "test"}
    assert not [note for note in listing.notes if "split.csv" in note]


def test_patients_of_the_file_in_another_order_are_refused(tmp_path: Path):
    (tmp_path / "ids.csv").write_text("patient\n2\n1\n3\n4\n")
    said = fails(own_patients(tmp_path), ArraysOptions(patients=tmp_path / "ids.csv"))
    assert "ids.csv has the patients of the file itself in another order." in said
    (tmp_path / "ids.csv").write_text("patient\na\na\nb\nc\n")
    assert patients(own_patients(tmp_path), tmp_path / "ids.csv") == ["a", "a", "b", "c"]


# ------------------------------------------------------------------------------------------------------------- mistakes


def fails(root: Path, options: ArraysOptions = AT_125) -> str:
    with pytest.raises(DataError) as caught:
        scan(root, ONE, options)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert ".." not in text.replace("…", "")
    return text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2\n3\n", "`patients=FILE`: ids.csv: 3 values for 4 recordings"),
        ("who\n1\n2\n3\n4\n", "If its first line is a heading, call it 'patient' or 'label'"),
        ("patient\n1\n\n2\n3\n", "ids.csv has no patient for recording x[1] (empty)"),
        ("patient\n1\nnan\n2\n3\n", "ids.csv has no patient for recording x[1] (nan)"),
        ("label,age\na,1\nb,2\nb,2\nb,2\n", "has the columns label, age; call one of them 'patient'."),
        ("1,2,3\n1,2,3\n", "has several columns and none is called 'patient'"),
        ("patient,x\n1,2\n3\n", "row 3 of"),
        ("", "is empty"),
    ],
)
def test_a_table_that_does_not_fit_is_one_sentence(x: Path, tmp_path: Path, text: str, message: str):
    (tmp_path / "ids.csv").write_text(text)
    assert message in fails(x, attrs.evolve(AT_125, patients=str(tmp_path / "ids.csv")))


def test_other_mistakes_with_tables_are_one_sentence_too(x: Path, tmp_path: Path):
    assert "`patients=FILE`: there is no file" in fails(x, attrs.evolve(AT_125, patients="nowhere.csv"))
    np.save(tmp_path / "ids.npy", np.array([1.0, np.nan, 2, 3]))
    assert "no patient for recording x[1]" in fails(x, attrs.evolve(AT_125, patients=str(tmp_path / "ids.npy")))
    np.save(tmp_path / "y.npy", np.zeros((4, 2)))
    assert "shape (4, 2), expected one value" in fails(x, attrs.evolve(AT_125, labels=str(tmp_path / "y.npy")))
    np.save(tmp_path / "o.npy", np.array([{}, 1, 2, 3], dtype=object), allow_pickle=True)
    assert "holds Python objects" in fails(x, attrs.evolve(AT_125, labels=str(tmp_path / "o.npy")))
    (tmp_path / "ids.csv").write_bytes(b"\xff\xfe1\x00")
    assert "is not text in UTF-8" in fails(x, attrs.evolve(AT_125, patients=str(tmp_path / "ids.csv")))


def test_labels_that_are_measurements_are_not_used_and_block_nothing(tmp_path: Path):
    np.save(tmp_path / "many.npy", np.zeros((50, 100)))
    np.save(tmp_path / "ages.npy", np.linspace(20, 90, 50))
    listing = scan(tmp_path / "many.npy", ONE, attrs.evolve(AT_125, labels=str(tmp_path / "ages.npy")))
    assert listing.no_score.startswith("the labels have 50 different values for 50 recordings, such as '20' and ")
    assert listing.task is not None
    assert listing.task.classes == ()
    assert {entry.label for entry in listing.entries} == {None}


@pytest.mark.parametrize(("asked", "labelled"), [("own", True), ("none", False)])
def test_labels_in_the_file_of_the_recordings_are_used_unless_none_are_wanted(tmp_path: Path, asked: str, labelled):
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 100)), label=["a", "b", "a", "b"], sampling_rate=125)
    options = structure(ArraysOptions, overlaid(ArraysOptions, {}, [Assignment("", "labels", asked)]), "dataset")
    listing = scan(tmp_path / "x.npz", ONE, options)
    assert any(entry.label is not None for entry in listing.entries) == labelled
    assert any("No labels were given" in note for note in listing.notes) != labelled


def test_a_table_of_labels_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A word that is no choice is a path, and made absolute, in text and in Python."""
    monkeypatch.chdir(tmp_path)
    for value, is_text in (("y.csv", True), ("y.csv", False), (Path("y.csv"), False)):
        given = overlaid(ArraysOptions, {}, [Assignment("", "labels", value, is_text)])
        assert structure(ArraysOptions, given, "dataset").labels == tmp_path / "y.csv"


def test_files_that_are_not_what_was_meant_are_one_sentence(tmp_path: Path):
    def saved(name: str, array: Any) -> Path:
        np.save(tmp_path / name, array, allow_pickle=True)
        return tmp_path / name

    assert "give it in Hz with `sampling_rate=HZ`" in fails(saved("a.npy", SIGNAL), ArraysOptions())
    assert "has the shape (1, 2, 3, 4), expected" in fails(saved("b.npy", np.zeros((1, 2, 3, 4))))
    assert "`axes=['sample', 'channel']`" in fails(saved("c.npy", np.zeros((5000, 2))))
    assert "`axes=['recording', 'sample', 'channel']`" in fails(saved("d.npy", np.zeros((3, 500, 12))))
    assert "holds Python objects" in fails(saved("e.npy", np.array([[1], [1, 2]], dtype=object)))
    assert "expected numbers" in fails(saved("f.npy", np.zeros((2, 50), dtype="S3")))
    assert "is empty" in fails(saved("g.npy", np.zeros((0, 50))))
    assert "names 2 axes" in fails(
        saved("h.npy", np.zeros((2, 2, 50))), attrs.evolve(AT_125, axes=("channel", "sample"))
    )
    assert "1 names for 2 channels" in fails(saved("i.npy", np.zeros((2, 2, 50))), attrs.evolve(AT_125, names=("A",)))
    assert "a unique name" in fails(saved("j.npy", np.zeros((2, 2, 50))), attrs.evolve(AT_125, names=("A", "A")))
    (tmp_path / "k.pkl").write_bytes(b"")
    assert "is a pickle" in fails(tmp_path / "k.pkl")
    (tmp_path / "k.mat").write_bytes(b"")
    assert "cannot be read as a MATLAB file" in fails(tmp_path / "k.mat")
    (tmp_path / "k.doc").write_bytes(b"")
    assert "is none of .npz, .npy, .h5, .mat, .parquet, .csv and .txt" in fails(tmp_path / "k.doc")
    np.savez(tmp_path / "l.npz", label=[1], fs="fast")
    assert "has no array of signals, it has label, fs" in fails(tmp_path / "l.npz")
    np.savez(tmp_path / "m.npz", x=SIGNAL, fs=[125, 250])
    assert "must be one positive number" in fails(tmp_path / "m.npz")
    np.savez(tmp_path / "n.npz", x=SIGNAL, fs=125, channels=["A", "B"])
    assert "2 names for 1 channels" in fails(tmp_path / "n.npz")
    np.savez(tmp_path / "o.npz", x=SIGNAL, fs=125, patient=[1, 2])
    assert "2 values for 4 recordings" in fails(tmp_path / "o.npz")
    (tmp_path / "p.npz").write_bytes(b"PK nonsense")
    assert "is not an .npz file" in fails(tmp_path / "p.npz")


def test_folders_that_are_not_what_was_meant_are_one_sentence(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    assert "and found nothing" in fails(tmp_path / "empty")
    with pytest.raises(DataNotFound, match="nothing at"):
        scan(tmp_path / "nowhere", ONE, AT_125)
    two = tmp_path / "two"
    two.mkdir()
    for name in "ab":
        np.savez(two / f"{name}.npz", x=SIGNAL)
    assert "point `root=PATH` at one of them" in fails(two)
    flat = tmp_path / "flat"
    flat.mkdir()
    for name in "ab":
        np.save(flat / f"{name}.npy", SIGNAL[0])
    (tmp_path / "ids.csv").write_text("patient\n1\n2\n")
    assert "give it a column called 'file'" in fails(flat, attrs.evolve(AT_125, patients=str(tmp_path / "ids.csv")))
    (tmp_path / "ids.csv").write_text("file,patient\nx,1\ny,2\n")
    assert "names none of the files" in fails(flat, attrs.evolve(AT_125, patients=str(tmp_path / "ids.csv")))
    (tmp_path / "ids.csv").write_text("file,patient\na,1\na,2\n")
    assert "has both '1' and '2' for 'a'" in fails(flat, attrs.evolve(AT_125, patients=str(tmp_path / "ids.csv")))
    (flat / "a.npy").write_bytes(b"")
    (flat / "b.npy").write_bytes(b"?")
    assert "None of 2 files can be read" in fails(flat)


def test_a_rate_that_the_user_gives_wins_and_is_told(tmp_path: Path):
    np.savez(tmp_path / "x.npz", x=SIGNAL, fs=250)
    listing = scan(tmp_path / "x.npz", ONE, AT_125)
    assert "The file says 250 Hz; 125 Hz was given, and is used." in listing.notes
    assert load(listing.entries[0], AT_125).sampling_rate == 125


@pytest.mark.parametrize("text", ["1,2\n3\n" * 20, "1,2\n3,x\n" * 20, "A,B\n", "", "\n\n", "1 2 3 4\n"])
def test_a_damaged_text_file_is_a_value_error_at_its_load(tmp_path: Path, text: str):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=re.escape("a.csv")):
        load(Entry("a.csv", "p", files=(tmp_path / "a.csv",)), AT_125)


@pytest.mark.parametrize("heading", ["label", "label,patient", "file,label", "patient,label"])
def test_a_table_with_only_a_heading_is_refused(tmp_path: Path, heading: str):
    np.save(tmp_path / "x.npy", SIGNAL)
    (tmp_path / "labels.csv").write_text(f"{heading}\n")
    options = ArraysOptions(labels=tmp_path / "labels.csv", sampling_rate=125.0)
    with pytest.raises(DataError, match="has a heading, but no row below it"):
        scan(tmp_path / "x.npy", Task("label", classes=()), options)


def test_numbers_of_thousands_of_digits_are_classes_like_others(tmp_path: Path):
    """int() refuses more than 4,300 digits."""
    np.save(tmp_path / "x.npy", SIGNAL)
    (tmp_path / "labels.csv").write_text("label\n10\n9\n" + "9" * 5000 + "\n10\n"[: 4 * (len(SIGNAL) - 3)])
    options = ArraysOptions(labels=tmp_path / "labels.csv", sampling_rate=125.0)
    listing = scan(tmp_path / "x.npy", Task("label", classes=()), options)
    assert listing.task is not None
    assert listing.task.classes == ("9", "10", "9" * 5000)


# ----------------------------------------------------------------------------------------------------------------- fuzz


def header(shape: str, kind: str = "<f4") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "shape", ["(9999999999999,)", "(3, 99999999999)", "(-1, 50)", "(2, 1000)", "((((", "'a'", "(1e9,)", "(2**62, 4)"]
)
def test_a_giant_number_in_a_header_allocates_nothing(tmp_path: Path, shape: str):
    raw = header(shape) + bytes(400)
    (tmp_path / "x.npy").write_bytes(raw)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", raw)
    for name in ("x.npy", "x.npz"):
        fails(tmp_path / name)


def valid_files() -> dict[str, bytes]:
    made = {"x.npy": io.BytesIO(), "x.npz": io.BytesIO(), "c.npz": io.BytesIO()}
    np.save(made["x.npy"], SIGNAL)
    np.savez(made["x.npz"], x=SIGNAL, patient=[1, 2, 3, 4], fs=125, channels=["A"])
    np.savez_compressed(made["c.npz"], x=SIGNAL, label=["a", "b", "", "b"])
    return {name: buffer.getvalue() for name, buffer in made.items()} | {"x.csv": b"A,B\n" + b"1.5,2\n" * 50}


VALID = valid_files()


@settings(max_examples=250)
@given(st.sampled_from(sorted(VALID)), st.data())
def test_spoilt_files_raise_what_was_promised_and_nothing_else(tmp_path_factory, name: str, data):
    """A DataError from the scan; from a load any ValueError or OSError, which costs one recording."""
    raw = bytearray(VALID[name])
    if data.draw(st.booleans(), "cut"):
        del raw[data.draw(st.integers(0, len(raw) - 1), "at") :]
    else:
        for _ in range(data.draw(st.integers(1, 5), "changes")):
            end = data.draw(st.sampled_from([min(200, len(raw)), len(raw)]), "where")
            raw[data.draw(st.integers(0, end - 1), "place")] = data.draw(st.integers(0, 255), "byte")
    folder = tmp_path_factory.mktemp("spoilt")
    (folder / name).write_bytes(raw)
    if name.endswith("csv"):
        (folder / "other.csv").write_bytes(b"A,B\n" + b"1,2\n" * 50)
    try:
        listing = scan(folder, ONE, AT_125)
    except DataError:
        return
    for entry in listing.entries[:50]:
        try:
            record = load(entry, AT_125)
        except (ValueError, OSError):
            continue
        assert record.samples.size


def test_measurements_are_labels_of_the_task_number(tmp_path: Path):
    np.save(tmp_path / "many.npy", np.zeros((50, 100)))
    (tmp_path / "ages.csv").write_text("\n".join(["label", *(str(20.5 + n) if n else "" for n in range(50))]) + "\n")
    asked = attrs.evolve(AT_125, labels=str(tmp_path / "ages.csv"), label_unit="years")
    number = Task("number", kind="number")
    listing = scan(tmp_path / "many.npy", number, asked)
    assert listing.task == Task("number", kind="number", unit="years")
    assert [entry.label for entry in listing.entries[:3]] == [None, 21.5, 22.5]
    assert listing.no_score == ""
    assert "`task='number'` predicts them" in scan(tmp_path / "many.npy", ONE, asked).no_score
    (tmp_path / "ages.csv").write_text("\n".join(["label", *["old"] * 50]) + "\n")
    strange = scan(tmp_path / "many.npy", number, asked)
    assert strange.no_score == "the label 'old' is no number, and the task 'number' predicts numbers"
    assert {entry.label for entry in strange.entries} == {None}


@pytest.fixture
def by_patient(tmp_path: Path) -> Path:
    """A folder of each patient, with files of the same names."""
    for patient in ("p0", "p1", "p2"):
        (tmp_path / "held" / patient).mkdir(parents=True)
        for name in ("rest", "stress"):
            np.save(tmp_path / "held" / patient / f"{name}.npy", SIGNAL[0])
    return tmp_path / "held"


def labelled(root: Path, table: Path, text: str) -> list[tuple[str, object]]:
    table.write_text(text)
    listing = scan(root, ONE, attrs.evolve(AT_125, labels=table))
    return [(entry.record, entry.label) for entry in listing.entries]


def test_files_of_several_patients_with_one_name_are_told_apart_by_the_patient(by_patient: Path, tmp_path: Path):
    rows = ["patient,file,label", "p0,rest,a", "p0,stress,b", "p1,rest.npy,b", "p2,p2/stress.npy,a", "p9,rest,b"]
    assert labelled(by_patient, tmp_path / "t.csv", "\n".join(rows)) == [
        ("p0/rest.npy", 0),
        ("p0/stress.npy", 1),
        ("p1/rest.npy", 1),
        ("p1/stress.npy", None),
        ("p2/rest.npy", None),
        ("p2/stress.npy", 0),
    ]


def test_a_name_that_several_files_have_is_refused_without_the_patient(by_patient: Path, tmp_path: Path):
    with pytest.raises(DataError, match=r"'rest', which is the name of 3 files, such as .*p0.* and .*p1"):
        labelled(by_patient, tmp_path / "t.csv", "file,label\nrest,a\n")
    paths = "file,label\np0/rest,a\np1/rest,b\n"
    assert [label for _, label in labelled(by_patient, tmp_path / "t.csv", paths)] == [0, None, 1, None, None, None]


def test_paths_are_enough_where_a_table_has_other_ids_of_patients(by_patient: Path, tmp_path: Path):
    rows = "patient,file,label\n1001,p0/rest,a\n1002,p1/rest,b\n"
    assert [label for _, label in labelled(by_patient, tmp_path / "t.csv", rows)] == [0, None, 1, None, None, None]
