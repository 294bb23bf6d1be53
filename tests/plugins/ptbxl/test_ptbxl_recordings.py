"""PTB-XL: counts and signals of the real subset, every form that a user may have, damaged tables and files."""

from __future__ import annotations

import ast
import csv
import warnings
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_ptbxl import COLUMNS, row, write_record, write_set

from clocs_core import DataError, DataNotFound, Record
from clocs_core.data.framing import cut_frames
from clocs_core.data.splits import published_split, split_patients
from clocs_core.testing import checks_of
from clocs_plugins.ptbxl import LEADS, PtbxlOptions, clocs_datasets

(OFFER,) = clocs_datasets()
TASKS = {task.name: task for task in OFFER.tasks}
RHYTHM, SUPERCLASS, AGE = TASKS["rhythm-group"], TASKS["superclass"], TASKS["age"]


@pytest.fixture(scope="session")
def real(test_data: Path) -> Path:
    folder = test_data / "ptbxl"
    if not (folder / "ptbxl_database.csv").is_file():
        pytest.skip("no PTB-XL among the real recordings")
    return folder


@pytest.fixture(scope="session")
def listing(real: Path):
    """The real subset, scanned once for its rhythms."""
    return scan(real)


def scan(root: Path, task=RHYTHM, **options):
    return OFFER.scan(root, task, PtbxlOptions(**options))


def load(entry) -> Record:
    return OFFER.load(entry, PtbxlOptions())


# ------------------------------------------------------------------------------------------------------ the real subset


def test_the_real_subset_has_its_recordings_patients_and_rhythms(real: Path, listing):
    """Counted here once more from the table, in plain loops."""
    assert len(listing.entries) == 5695
    assert len({entry.patient for entry in listing.entries}) == 5018
    assert listing.drops == ()
    assert listing.form == "ptbxl/ with records100/ (100 Hz)"
    assert listing.notes == ("245 recordings do not have one rhythm group and serve pre-training only.",)
    expected = Counter()
    with open(real / "ptbxl_database.csv", encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            codes = ast.literal_eval(line["scp_codes"])
            groups = set()
            for name, members in {
                "AFIB": ("AFIB", "AFLT"),
                "GSVT": ("STACH", "SVTAC", "PSVT"),
                "SB": ("SBRAD",),
                "SR": ("SR", "SARRH"),
            }.items():
                if any(code in codes for code in members):
                    groups.add(name)
            others = groups - {"SR"}
            expected[others.pop() if len(others) == 1 else "SR" if groups == {"SR"} else None] += 1
    found = Counter(None if entry.label is None else RHYTHM.classes[entry.label] for entry in listing.entries)
    assert found == expected == {"SR": 2466, "AFIB": 1521, "GSVT": 826, "SB": 637, None: 245}


def test_no_real_patient_is_in_two_parts(real: Path, listing):
    """Neither by our split nor by the published folds."""
    ours = split_patients((entry.patient for entry in listing.entries), 0, OFFER.defaults.split)
    assert ours.counts() == {"train": 3010, "validation": 1003, "test": 1005}
    listing = scan(real, parts="strat_fold")
    assert published_split(listing.parts, 0).counts() == {"train": 4016, "validation": 501, "test": 501}
    folds = defaultdict(set)
    with open(real / "ptbxl_database.csv", encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            folds[line["patient_id"].split(".")[0]].add(int(line["strat_fold"]))
    assert set(listing.parts) == set(folds)
    for patient, numbers in folds.items():
        (number,) = numbers
        assert listing.parts[patient] == ("train" if number <= 8 else "validation" if number == 9 else "test")


def test_superclasses_of_the_real_subset(real: Path):
    """Every diagnosis counts, whatever its likelihood: it is 0 where the report left it open."""
    listing = scan(real, SUPERCLASS)
    found = Counter(SUPERCLASS.classes[one] for entry in listing.entries for one in entry.label or ())
    assert found == {"CD": 2453, "MI": 1830, "STTC": 1803, "NORM": 1304, "HYP": 935}
    assert listing.notes == ("102 recordings do not have a class of 'superclass' and serve pre-training only.",)
    surer = scan(real, SUPERCLASS, likelihood=100.0)
    assert all(
        (one.label or frozenset()) <= (two.label or frozenset())
        for one, two in zip(surer.entries, listing.entries, strict=True)
    )
    assert sum(entry.label is None for entry in surer.entries) > 102


def test_real_signals_are_those_of_wfdb_to_the_last_bit(listing):
    """As integers, and in mV as the package `wfdb` gives them; leads by the names that everybody else uses."""
    with warnings.catch_warnings(action="ignore"):  # wfdb asks pandas for what it will take away
        import wfdb

        entries = listing.entries
        for entry in [*entries[:3], *entries[2000:2003], *entries[-3:]]:
            record = load(entry)
            theirs = wfdb.rdrecord(str(entry.files[0].with_suffix("")))
            assert record.channels == LEADS
            assert tuple(name.upper() for name in record.channels) == tuple(name.upper() for name in theirs.sig_name)
            assert record.samples.dtype == np.int16
            assert (record.unit, record.sampling_rate, record.gain) == ("mV", 100.0, 1000.0)
            np.testing.assert_array_equal(record.physical(), theirs.p_signal.T)


def test_real_heartbeats_are_about_a_millivolt(listing):
    """A wrong gain would be a factor of a thousand."""
    entries = listing.entries[::200]
    heights = [np.ptp(load(entry).physical()[1]) for entry in entries]
    assert 0.5 < np.median(heights) < 3


def test_ten_seconds_become_one_frame_or_two_halves(listing):
    """999 samples too: the time scale is that of the whole recording."""
    record = load(listing.entries[0])
    one = cut_frames(record, OFFER.framing(1))
    two = cut_frames(record, OFFER.framing(2))
    assert one.samples.shape == (1, 12, 2500)
    assert two.samples.shape == (2, 12, 2500)
    assert two.start.tolist() == [0, record.samples.shape[1] // 2]
    # Halves have twice the samples of the same time: every second one is that of the single frame.
    whole = two.samples.transpose(1, 0, 2).reshape(12, 5000)
    np.testing.assert_allclose(whole[:, ::2], one.samples[0], atol=1e-5)


def test_the_offer_keeps_its_promises(tmp_path: Path):
    """The conformance kit, on a small set; that no header is opened by a scan among them."""
    rows = [row(n, ("{'AFIB': 0.0, 'NORM': 80.0}", "{'SR': 0.0}", "{}")[n % 3]) for n in range(1, 7)]
    for check in checks_of(OFFER, root=write_set(tmp_path, rows)):
        check.run()


# ----------------------------------------------------------------------------------------------------------- every form


@pytest.mark.parametrize("where", [".", "ptb-xl-1.0.3", "physionet.org/files/ptb-xl/1.0.3"])
@pytest.mark.parametrize("rates", [(100,), (500,), (100, 500)])
def test_every_form_is_found(tmp_path: Path, where: str, rates):
    """Unpacked, one folder too deep, or mirrored by wget; with either rate, or both, of which 100 Hz is read."""
    write_set(tmp_path / where, [row(2), row(1, "{'SBRAD': 0.0}")], rates)
    listing = scan(tmp_path)
    assert [(entry.record, entry.patient, entry.label) for entry in listing.entries] == [
        ("00001", "1001", 2),
        ("00002", "1002", 3),
    ]
    for rate in rates:
        for entry in scan(tmp_path, rate=rate).entries:
            record = load(entry)
            assert record.sampling_rate == rate
            assert record.samples.T.astype("<i2").tobytes() == entry.files[1].read_bytes()
    assert load(listing.entries[0]).sampling_rate == min(rates)


def test_halves_at_500_hz_keep_the_integers_of_the_recorder(tmp_path: Path):
    """5,000 samples are two frames as they are, in half the space of floats."""
    write_set(tmp_path, [row(1)], (500,))
    record = load(scan(tmp_path).entries[0])
    frames = cut_frames(record, OFFER.framing(2))
    assert frames.samples.dtype == np.int16
    np.testing.assert_array_equal(frames.samples[1], record.samples[:, 2500:])


def test_a_rate_that_is_not_there_is_answered_with_the_one_that_is(tmp_path: Path):
    write_set(tmp_path, [row(1)], (100,))
    with pytest.raises(DataNotFound, match=r"has no records500/, but there is records100/\. Use `rate=100`"):
        scan(tmp_path, rate=500)


# --------------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("codes", "group"),
    [
        ("{'AFIB': 0.0}", "AFIB"),
        ("{'AFLT': 100.0}", "AFIB"),
        ("{'AFLT': 0.0, 'AFIB': 0.0, 'SR': 0.0}", "AFIB"),
        ("{'STACH': 0.0}", "GSVT"),
        ("{'SVTAC': 0.0}", "GSVT"),
        ("{'PSVT': 0.0, 'SR': 0.0}", "GSVT"),
        ("{'SBRAD': 0.0, 'SARRH': 0.0}", "SB"),
        ("{'SARRH': 0.0}", "SR"),
        ("{'NORM': 100.0, 'SR': 0.0, 'ABQRS': 0.0}", "SR"),
        ("{'AFIB': 0.0, 'STACH': 0.0}", None),
        ("{'SBRAD': 0.0, 'STACH': 0.0, 'SR': 0.0}", None),
        ("{'PACE': 0.0}", None),
        ("{'sr': 0.0}", None),
        ("{}", None),
    ],
)
def test_rhythms_are_grouped(tmp_path: Path, codes: str, group: str | None):
    """As for Chapman; sinus rhythm gives way, and a recording of two groups has no single answer."""
    (entry,) = scan(write_set(tmp_path, [row(1, codes)])).entries
    assert entry.label == (None if group is None else RHYTHM.classes.index(group))


@pytest.mark.parametrize(
    ("codes", "likelihood", "classes"),
    [
        ("{'NORM': 80.0, 'SR': 0.0}", 0.0, {"NORM"}),
        ("{'IMI': 15.0, 'LVH': 100.0, 'NDT': 0.0}", 0.0, {"MI", "HYP", "STTC"}),
        ("{'IMI': 15.0, 'LVH': 100.0, 'NDT': 0.0}", 15.0, {"MI", "HYP"}),
        ("{'IMI': 15.0, 'LVH': 100.0, 'NDT': 0.0}", 100.0, {"HYP"}),
        ("{'CLBBB': 100, 'ABQRS': 100.0}", 0.0, {"CD"}),
        ("{'SR': 100.0, 'ABQRS': 100.0, 'XYZ': 100.0}", 0.0, None),
    ],
)
def test_diagnoses_are_gathered_in_superclasses(tmp_path: Path, codes: str, likelihood: float, classes):
    """Forms and rhythms are no diagnoses; a recording without one has no label."""
    root = write_set(tmp_path, [row(1, codes)])
    (entry,) = scan(root, SUPERCLASS, likelihood=likelihood).entries
    assert entry.label == (classes and frozenset(SUPERCLASS.classes.index(name) for name in classes))


def test_classes_are_those_of_the_published_table_of_statements(real: Path):
    """All seven tasks, from scp_statements.csv in plain loops; the benchmark names 71, 44, 23, 5, 19 and 12 classes."""
    classes = {name: {} for name in ("all", "diagnostic", "subclass", "superclass", "form", "rhythm")}
    with open(real / "scp_statements.csv", encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            code = line[""]
            classes["all"][code] = code
            for kind in ("diagnostic", "form", "rhythm"):
                if line[kind] == "1.0":
                    classes[kind][code] = code
            if line["diagnostic"] == "1.0":
                classes["superclass"][code] = line["diagnostic_class"]
                classes["subclass"][code] = line["diagnostic_subclass"]
    counts = {name: len(set(of.values())) for name, of in classes.items()}
    assert counts == {"all": 71, "diagnostic": 44, "subclass": 23, "superclass": 5, "form": 19, "rhythm": 12}
    with open(real / "ptbxl_database.csv", encoding="utf-8", newline="") as file:
        statements = [ast.literal_eval(line["scp_codes"]) for line in csv.DictReader(file)]
    for name, of in classes.items():
        task = TASKS[name]
        assert sorted(task.classes) == sorted(set(of.values()))
        found = [{task.classes[one] for one in entry.label or ()} for entry in scan(real, task).entries]
        assert found == [{of[code] for code in codes if code in of} for codes in statements]


def test_classes_too_rare_to_test_can_be_left_out(real: Path):
    """Subclasses, forms and rhythms in one task; the 13 left out have at most 8 recordings in the whole of fold 10."""
    task = TASKS["ptbxl-c"]
    left_out = {name for kind in ("subclass", "form", "rhythm") for name in TASKS[kind].classes} - set(task.classes)
    assert len(task.classes) == 40
    rare = "ILBBB PMI WPW SEHYP AFLT BIGU PSVT SVTAC TRIGU HVOLT PRC(S) STE_ TAB_"
    assert left_out == set(rare.split())
    assert {task.classes[one] for one in scan(real, task).entries[0].label} <= set(task.classes)


# ---------------------------------------------------------------------------------------------------------------- folds


def test_published_folds_become_parts_by_patient(tmp_path: Path):
    rows = [row(n, fold=str(fold), patient=f"{n % 3}.0") for n, fold in ((1, 8), (2, 9), (3, 10), (4, 3), (5, "9.0"))]
    assert scan(write_set(tmp_path, rows), parts="strat_fold").parts == {
        "1": "train",
        "2": "validation",
        "0": "test",
    }
    assert scan(tmp_path).parts is None
    assert scan(tmp_path).published == scan(tmp_path, parts="strat_fold").parts


@pytest.mark.parametrize("parts", ["patient", "strat_fold"])
def test_other_folds_can_validate_and_test(tmp_path: Path, parts: str):
    """Each recording is tested once in ten runs; folds that are asked for are never ignored."""
    root = write_set(tmp_path, [row(n, fold=str(n)) for n in range(1, 11)])
    patient = {number: str(1000 + number) for number in range(1, 11)}
    for validates, tests in ((9, 8), (10, 1), (9, 10)):
        found = scan(root, parts=parts, validation_fold=validates, test_fold=tests)
        expected = dict.fromkeys(patient.values(), "train")
        expected |= {patient[validates]: "validation", patient[tests]: "test"}
        assert found.published == expected
        assert found.parts == (None if parts == "patient" and (validates, tests) == (9, 10) else expected)


@pytest.mark.parametrize(
    ("folds", "said"),
    [
        ({"test_fold": 9}, r"ptbxl got fold 9 to validate and to test; give two folds"),
        ({"validation_fold": 0}, r"validation_fold.*1 to 10"),
        ({"test_fold": 11}, r"test_fold.*1 to 10"),
    ],
)
def test_folds_that_cannot_be_are_refused_before_any_file_is_read(folds: dict[str, int], said: str):
    with pytest.raises(ValueError, match=said):
        PtbxlOptions(**folds)


def test_a_patient_in_two_parts_is_refused(tmp_path: Path):
    """A table that was edited would let a patient train and test."""
    root = write_set(tmp_path, [row(1, patient="7.0", fold="2"), row(2, patient="7", fold="10")])
    with pytest.raises(DataError, match=r"patient 7 is in train and, with recording 00002, in test.*`parts='patient'`"):
        scan(root, parts="strat_fold")
    assert {entry.patient for entry in scan(root).entries} == {"7"}
    assert scan(root).published is None
    assert scan(root).unpublished.startswith("PTB-XL: by strat_fold, patient 7 is in train and")


def test_a_recording_without_a_fold_is_left_out_where_folds_are_asked_for(tmp_path: Path):
    root = write_set(tmp_path, [row(1), row(2, fold=""), row(3, fold="11")])
    assert [(drop.reason, drop.record) for drop in scan(root, parts="strat_fold").drops] == [
        ("no strat_fold", "00002"),
        ("no strat_fold", "00003"),
    ]
    assert len(scan(root).entries) == 3
    assert scan(root).published is None
    assert scan(root).unpublished == (
        "2 of its recordings have no strat_fold, such as 00002: `parts='strat_fold'` leaves them out"
    )


# ---------------------------------------------------------------------------------------------------- what is left out


def test_a_partial_download_is_one_note(tmp_path: Path):
    """Thousands of drops would drown the others."""
    root = write_set(tmp_path, [row(n) for n in range(1, 6)], absent=("2", "4", "5"))
    listing = scan(root)
    assert [entry.record for entry in listing.entries] == ["00001", "00003"]
    assert listing.drops == ()
    assert listing.notes == ("3 of 5 recordings listed in ptbxl_database.csv are not in records100/.",)


def test_rows_that_cannot_serve_are_drops_with_their_reason(tmp_path: Path):
    rows = [
        row(1),
        row(2, "{'SR': "),
        row(3, "['SR']"),
        row(4, "{'SR': 'much'}"),
        row(5, patient="nan"),
        row(6),
        row(1),
        row(7, ecg_id="seven"),
        row(8, "{" * 5000),
        row(9, "-" * 1900 + "1"),  # deeper than the parser goes
        row(10, "{'SR': 0.0}" + " " * 2000),  # longer than any of the set
    ]
    root = write_set(tmp_path, rows)
    (root / "records100/00000/00006_lr.dat").unlink()
    listing = scan(root)
    assert [entry.record for entry in listing.entries] == ["00001"]
    assert [(drop.record, drop.reason) for drop in listing.drops] == [
        ("00002", "broken scp_codes"),
        ("00003", "broken scp_codes"),
        ("00004", "broken scp_codes"),
        ("00005", "no patient id"),
        ("00006", "missing file"),
        ("00001", "listed twice"),
        ("row 9", "broken row"),
        ("00008", "broken scp_codes"),
        ("00009", "broken scp_codes"),
        ("00010", "broken scp_codes"),
    ]


def test_a_name_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path):
    """Only files that a listing of records100/ shows are read."""
    write_record(tmp_path / "secret", 100)
    inside = write_set(tmp_path / "set", [row(1), row(2, filename_lr="records100/../../secret")])
    assert [entry.record for entry in scan(inside).entries] == ["00001"]


def test_the_order_is_that_of_the_numbers(tmp_path: Path):
    root = write_set(tmp_path, [row(21000), row(100000), row(3)])
    assert [entry.record for entry in scan(root).entries] == ["00003", "21000", "100000"]


# -------------------------------------------------------------------------------------------------- nothing, and damage


def test_a_folder_without_the_table_says_what_was_looked_for(tmp_path: Path):
    (tmp_path / "records100").mkdir()
    with pytest.raises(
        DataNotFound, match=r"by its table ptbxl_database.csv\. There is records100\. Unpack the download"
    ):
        scan(tmp_path)
    (tmp_path / "ptb-xl.zip").write_bytes(b"PK")
    with pytest.raises(DataNotFound, match=r"There is a file\. Unpack the download, and set `root=\.\.\.`"):
        scan(tmp_path / "ptb-xl.zip")
    with pytest.raises(DataNotFound, match="There is nothing"):
        scan(tmp_path / "nowhere")
    root = write_set(tmp_path / "tables only", [row(1)], rates=())
    with pytest.raises(DataNotFound, match="has no records100/ or records500/"):
        scan(root)
    (root / "records100").mkdir()
    with pytest.raises(DataError, match=r"none of the 1 recordings .* 1 are not there, 0 are damaged"):
        scan(root)


def test_a_table_without_a_column_says_which(tmp_path: Path):
    root = write_set(tmp_path, [row(1)])
    table = root / "ptbxl_database.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("strat_fold", "fold"), encoding="utf-8")
    with pytest.raises(DataError, match="has no column 'strat_fold'"):
        scan(root)
    table.write_text(",".join(COLUMNS) + "\n1," + "x" * 200_000 + "\n")
    with pytest.raises(DataError, match=r"is not a table .*field larger"):
        scan(root)


def test_a_table_that_a_spreadsheet_saved_is_read(tmp_path: Path):
    """It puts a mark at the start, which would become part of the first column's name."""
    root = write_set(tmp_path, [row(1)])
    table = root / "ptbxl_database.csv"
    table.write_bytes(b"\xef\xbb\xbf" + table.read_bytes())
    assert len(scan(root).entries) == 1


@pytest.mark.parametrize("samples", [500, 989, 1011, 2000])
def test_a_recording_that_is_not_10_s_long_is_refused(tmp_path: Path, samples: int):
    """Stretched to a frame, half a recording would beat at half the rate: tachycardia would look like sinus rhythm."""
    root = write_set(tmp_path, [row(1)])
    write_record(root / row(1)["filename_lr"], 100, samples)
    with pytest.raises(DataError, match=rf"00001 has {samples:,} samples at 100 Hz, .* expected 10 s"):
        load(scan(root).entries[0])


def test_a_signal_that_is_cut_short_is_refused(tmp_path: Path):
    """The header still says 1,000 samples."""
    root = write_set(tmp_path, [row(1)])
    (entry,) = scan(root).entries
    entry.files[1].write_bytes(entry.files[1].read_bytes()[:12000])
    with pytest.raises(DataError, match="has 500 samples"):
        load(entry)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_of_a_table_is_worse_than_an_error(tmp_path: Path, data: st.DataObject):
    """Whatever is in the tables, a scan ends with a listing or an ordinary error."""
    root = write_set(tmp_path / "set", [row(1), row(2, "{'AFIB': 0.0, 'NORM': 50.0}")], rates=())
    if not (root / "records100").is_dir():
        write_record(root / row(1)["filename_lr"], 100)
        write_record(root / row(2)["filename_lr"], 100)
    path = root / "ptbxl_database.csv"
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(
            st.one_of(
                st.binary(max_size=3), st.sampled_from([b'"', b",", b"\n", b"{", b"'", b"\0", b"(" * 500, b"9" * 60])
            )
        )
    path.write_bytes(content[: data.draw(st.one_of(st.none(), st.integers(0, len(content))))])
    with suppress(ValueError, OSError):
        for entry in scan(root, data.draw(st.sampled_from([RHYTHM, SUPERCLASS])), parts="strat_fold").entries:
            assert len(load(entry).channels) == 12


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_of_a_recording_is_worse_than_an_error(tmp_path: Path, data: st.DataObject):
    """Numbers in a header are claims; none may cost memory or time."""
    root = write_set(tmp_path / "set", [row(1)])
    (entry,) = scan(root).entries
    header = bytearray(entry.files[0].read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(header) - 1))
        header[place : place + data.draw(st.integers(0, 4))] = data.draw(
            st.sampled_from([b"", b"0", b"-", b" ", b"\n", b"99999999999", b"1e9", b"/", b"(", b"nan", b"\xff", b"mV"])
        )
    entry.files[0].write_bytes(header)
    signal = entry.files[1].read_bytes()
    entry.files[1].write_bytes(signal[: data.draw(st.one_of(st.none(), st.integers(0, len(signal))))])
    with suppress(ValueError, OSError):
        record = load(entry)
        assert record.samples.size <= 12 * 5000


# ------------------------------------------------------------------------------------------------------- age and sex


def test_age_and_sex_are_those_of_the_table(real: Path, listing):
    """Counted once more from the table; everybody older than 89 is 300 there."""
    with open(real / "ptbxl_database.csv", encoding="utf-8", newline="") as file:
        table = {one["ecg_id"].zfill(5): one for one in csv.DictReader(file)}
    for entry in listing.entries:
        age, sex = table[entry.record]["age"], table[entry.record]["sex"]
        assert entry.about["age"] == (None if age in ("", "300.0") else float(age))
        assert entry.about["sex"] == ("female" if sex == "1" else "male")


@pytest.mark.parametrize(("age", "found"), [("56.0", 56.0), ("300.0", None), ("", None), ("old", None), ("0", 0.0)])
def test_an_age_that_is_missing_or_hidden_is_said_to_be_so(tmp_path: Path, age: str, found: float | None):
    root = write_set(tmp_path / "set", [row(1)])
    text = (root / "ptbxl_database.csv").read_text(encoding="utf-8")
    lines = [*csv.reader(text.splitlines(keepends=True))]
    for line, more in zip(lines, (["age", "sex"], [age, "9"]), strict=True):
        line += more
    with open(root / "ptbxl_database.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    (entry,) = scan(root).entries
    assert entry.about == {"age": found, "sex": None}


def test_a_table_without_age_and_sex_can_be_read(tmp_path: Path):
    root = write_set(tmp_path / "set", [row(1)])
    table = root / "ptbxl_database.csv"
    table.write_text(
        table.read_text(encoding="utf-8").replace("patient_id,age,", "patient_id,years,"), encoding="utf-8"
    )
    (entry,) = scan(root).entries
    assert entry.about == {"age": None, "sex": None}


def test_ages_are_labels_of_a_number_and_300_is_unknown(tmp_path):
    """300 stands for every age above 89: as a number it would make an error of 210 years."""
    ages = ["56.0", "300.0", "", "x", "89"]
    rows = [row(number, age=age) for number, age in enumerate(ages, 1)]
    listing = scan(write_set(tmp_path, rows), AGE)
    assert [entry.label for entry in listing.entries] == [56.0, None, None, None, 89.0]
    assert listing.notes == ("3 recordings do not have a known age and serve pre-training only.",)


def test_a_table_without_ages_is_refused_where_ages_are_asked_for(tmp_path):
    root = write_set(tmp_path, [row(1)])
    table = root / "ptbxl_database.csv"
    table.write_text(
        table.read_text(encoding="utf-8").replace("patient_id,age,", "patient_id,years,"), encoding="utf-8"
    )
    with pytest.raises(DataError, match="has no column 'age'"):
        scan(root, AGE)
    assert len(scan(root).entries) == 1
