"""CPSC 2018 in its three forms: found, labelled in words, codes or numbers, read bit by bit."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from real_frames import prepared_by
from scipy.io import loadmat, savemat
from unreliable_server import Behaviour, serve, sums_of

import clocs_plugins.physionet2020 as plugin
from clocs_core import DataError, DataNotFound, Drop, NoOptions
from clocs_core.cli import main
from clocs_core.testing import checks_of, failures
from clocs_plugins.physionet2020 import FINDINGS, LEADS, clocs_datasets, load, scan

(OFFER,) = clocs_datasets()
WORDS = ("AF", "I-AVB", "LBBB", "Normal", "PAC", "PVC", "RBBB", "STD", "STE")
SNOMED = {  # as the tables of the challenge have them
    "164889003": "AF",
    "270492004": "I-AVB",
    "164909002": "LBBB",
    "426783006": "Normal",
    "284470004": "PAC",
    "164884008": "PVC",
    "59118001": "RBBB",
    "429622005": "STD",
    "164931005": "STE",
}
ALIASES = {"713427006": "RBBB", "63593006": "PAC", "427172004": "PVC", "17338001": "PVC", "733534002": "LBBB"}


def write(folder, record, diagnosis="AF", length=3000, seed=0, leads=LEADS):
    folder.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(seed).integers(-900, 900, (len(leads), length)).astype("<i2")
    start = struct.pack("<5i", 30, len(leads), length, 0, 4) + b"val\0"
    (folder / f"{record}.mat").write_bytes(start + samples.T.tobytes())
    lines = [f"{record} {len(leads)} 500 {length} 05-Feb-2020 11:39:16"]
    for lead, channel in zip(leads, samples, strict=True):
        total = sum(channel.tolist()) % 65536
        lines.append(f"{record}.mat 16+24 1000/mV 16 0 {channel[0]} {total - 65536 * (total > 32767)} 0 {lead}")
    said = [] if diagnosis is None else [f"#Dx: {diagnosis}"]
    (folder / f"{record}.hea").write_text("\n".join([*lines, "#Age: 74", *said, "#Rx: Unknown"]) + "\n")
    return samples


def list_in(root):
    return scan(root, FINDINGS, NoOptions())


def words_of(listing):
    return {one.record: None if one.label is None else {WORDS[i] for i in one.label} for one in listing.entries}


# -------------------------------------------------------------------------------------------------------------- labels


def test_the_nine_classes_have_the_order_of_the_papers_code():
    assert FINDINGS.classes == WORDS
    assert FINDINGS.kind == "any_of"


@pytest.mark.parametrize(("code", "word"), [*SNOMED.items(), *ALIASES.items(), *zip(WORDS, WORDS, strict=True)])
def test_words_codes_and_their_aliases_name_the_class(tmp_path, code, word):
    """STD, STE and ventricular ectopics are not among the scored codes: a loader built on those loses three of nine."""
    write(tmp_path, "A0001", code)
    assert words_of(list_in(tmp_path)) == {"A0001": {word}}


def test_several_labels_unknown_ones_and_none(tmp_path):
    write(tmp_path, "A0001", "AF,RBBB,")
    write(tmp_path, "A0002", "59118001,,10370003,713427006")
    write(tmp_path, "A0003", "10370003")
    write(tmp_path, "A0004", None)
    write(tmp_path, "A0005", "39732003,10370003")
    listing = list_in(tmp_path)
    assert words_of(listing) == {"A0001": {"AF", "RBBB"}, "A0002": {"RBBB"}, "A0004": None}
    assert listing.drops == (Drop("unmapped label", "A0003"), Drop("unmapped label", "A0005"))
    assert listing.notes == (
        "1 recordings come without a label.",
        "4 labels that are not of the nine classes were ignored: 10370003 (3), 39732003 (1).",
    )


# --------------------------------------------------------------------------------------------------------------- forms


@pytest.mark.parametrize(
    ("folders", "root"),
    [
        (["Training_WFDB"], ""),
        (["Training_WFDB"], "Training_WFDB"),
        (["training/cpsc_2018/g1", "training/cpsc_2018/g7"], ""),
        (["training/cpsc_2018/g1", "training/cpsc_2018/g7"], "training"),
        (["training/cpsc_2018/g1", "training/cpsc_2018/g7"], "training/cpsc_2018"),
        (["cpsc_2018/g1", "cpsc_2018/g7"], ""),
        (["cpsc_2018"], ""),
        (["anything"], ""),
        (["."], ""),
    ],
)
def test_recordings_are_found_wherever_they_are_unpacked(tmp_path, folders, root):
    written = {}
    for i, folder in enumerate(folders):
        for number in (1, 2):
            record = f"A{i}00{number}"
            written[record] = write(tmp_path / folder, record, "164889003", seed=10 * i + number)
    listing = list_in(tmp_path / root)
    assert [entry.record for entry in listing.entries] == sorted(written)
    assert "SNOMED labels" in listing.form
    assert listing.notes == ()
    for entry in listing.entries:
        record = load(entry, NoOptions())
        np.testing.assert_array_equal(record.samples, written[entry.record])
        assert (record.channels, record.unit, record.sampling_rate, record.gain) == (LEADS, "mV", 500, 1000)


def test_recordings_of_the_other_sets_are_left_out_with_one_note(tmp_path):
    write(tmp_path, "A0001")
    for other in ("Q0001", "E00001", "HR00001", "JS00001", "JS00002", "S0001", "I0001"):
        write(tmp_path, other)
    listing = list_in(tmp_path)
    assert words_of(listing) == {"A0001": {"AF"}}
    assert listing.drops == ()
    assert listing.notes == (
        "7 recordings of other sets (E 1, HR 1, I 1, JS 2, Q 1, S 1) were ignored: CPSC 2018 is A0001 to A6877.",
    )


def test_recordings_of_the_2017_challenge_are_not_taken_for_these(tmp_path):
    write(tmp_path, "A00001", leads=("ECG",))
    with pytest.raises(DataNotFound, match=r"No recording of CPSC 2018 .* found A00001\.hea, A00001\.mat"):
        list_in(tmp_path)


def test_a_folder_that_is_not_there_or_empty_is_told_of(tmp_path):
    for root in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataNotFound, match="found nothing"):
            list_in(root)


def test_what_is_missing_or_broken_is_a_drop(tmp_path):
    for number in range(1, 5):
        write(tmp_path, f"A000{number}")
    (tmp_path / "A0001.mat").unlink()
    (tmp_path / "A0002.hea").unlink()
    (tmp_path / "A0003.hea").write_text("A0003 12 500\n")
    listing = list_in(tmp_path)
    assert [entry.record for entry in listing.entries] == ["A0004"]
    assert listing.drops == (
        Drop("missing file", "A0001"),
        Drop("missing header", "A0002"),
        Drop("broken header", "A0003"),
    )


def test_leads_are_named_as_everywhere_and_all_must_be_there(tmp_path):
    write(tmp_path, "A0001", leads=tuple(lead.upper() for lead in LEADS))
    write(tmp_path, "A0002", leads=LEADS[::-1])
    write(tmp_path, "A0003", leads=LEADS[:11])
    first, second, third = list_in(tmp_path).entries
    assert load(first, NoOptions()).channels == LEADS
    assert load(second, NoOptions()).channels == LEADS[::-1]
    with pytest.raises(DataError, match=r"A0003.* has the leads I, II, .* V5, expected I, II"):
        load(third, NoOptions())


# ---------------------------------------------------------------------------------------------- the form of CPSC 2018


def write_structure(folder, record, length=3000, seed=0, leads=12):
    folder.mkdir(parents=True, exist_ok=True)
    data = np.random.default_rng(seed).normal(0, 0.3, (leads, length))
    savemat(folder / f"{record}.mat", {"ECG": {"sex": "Male", "age": 74, "data": data}}, do_compression=True)
    return data


TABLE = "Recording,First_label,Second_label,Third_label\nA0001,5,,\nA0002,1,,\nA0003,2,5,9\nA0004,12,,\nA0099,3,,\n"


@pytest.mark.parametrize("table", ["REFERENCE.csv", "TrainingSet1/REFERENCE.csv", "TrainingSet3/REFERENCE.csv"])
def test_structures_are_read_with_the_labels_of_their_table(tmp_path, table):
    """Numbers are in the order of CPSC 2018, not in that of the classes: 1 is normal, 5 is RBBB."""
    written = {}
    for i, folder in enumerate(("TrainingSet1", "TrainingSet1", "TrainingSet2", "TrainingSet3", "TrainingSet3"), 1):
        written[f"A000{i}"] = write_structure(tmp_path / folder, f"A000{i}", seed=i)
    (tmp_path / table).write_bytes(TABLE.replace("\n", "\r\n").encode())
    listing = list_in(tmp_path)
    assert words_of(listing) == {"A0001": {"RBBB"}, "A0002": {"Normal"}, "A0003": {"AF", "RBBB", "STE"}, "A0005": None}
    assert listing.drops == (Drop("unmapped label", "A0004"),)
    assert listing.notes == (
        "1 of 5 recordings listed in REFERENCE.csv are not there.",
        "1 recordings come without a label.",
        "1 labels that are not of the nine classes were ignored: 12 (1).",
    )
    for entry in listing.entries:
        record = load(entry, NoOptions())
        np.testing.assert_array_equal(record.samples, written[entry.record])
        assert (record.channels, record.unit, record.sampling_rate, record.gain) == (LEADS, "mV", 500, 1)


def test_every_number_of_the_table_names_its_class(tmp_path):
    order = ("Normal", "AF", "I-AVB", "LBBB", "RBBB", "PAC", "PVC", "STD", "STE")
    for i in range(1, 10):
        write_structure(tmp_path, f"A000{i}", length=10)
    (tmp_path / "REFERENCE.csv").write_text("".join(f"A000{i},{i}.0\n" for i in range(1, 10)))
    assert words_of(list_in(tmp_path)) == {f"A000{i}": {order[i - 1]} for i in range(1, 10)}


def test_structures_of_another_shape_are_refused(tmp_path):
    write_structure(tmp_path, "A0001", leads=11)
    savemat(tmp_path / "A0002.mat", {"other": 1})
    savemat(tmp_path / "A0003.mat", {"ECG": {"data": "text"}})
    for entry, says in zip(list_in(tmp_path).entries, ("shape", "no structure ECG", "ECG"), strict=True):
        with pytest.raises(DataError, match=says):
            load(entry, NoOptions())


def test_a_structure_larger_than_any_recording_is_not_read(tmp_path):
    write_structure(tmp_path, "A0001")
    (tmp_path / "REFERENCE.csv").write_text("Recording,First_label\nA0001,5\n")
    (entry,) = list_in(tmp_path).entries
    with open(entry.files[0], "ab") as file:
        file.truncate((1 << 24) + 1)
    with pytest.raises(DataError, match="expected at most 16,777,216"):
        load(entry, NoOptions())


# ----------------------------------------------------------------------------------------------- promises and real data


@pytest.mark.parametrize("structures", [False, True])
def test_the_offer_keeps_its_promises(tmp_path, structures):
    for number in range(1, 4):
        (write_structure if structures else write)(tmp_path, f"A000{number}", seed=number)
    (tmp_path / "REFERENCE.csv").write_text(TABLE)
    assert failures(checks_of(OFFER, root=tmp_path)) == {}


def test_the_settings_are_those_of_the_paper():
    """500 Hz as recorded, min-max, 64/16/20, mini-batches of 256, leads II, V2, aVL and aVR (appendix A)."""
    defaults = OFFER.defaults
    assert (defaults.normalise, defaults.split, defaults.batch_size) == ("min-max", "64/16/20", 256)
    assert OFFER.presets[defaults.channels] == ("II", "V2", "aVL", "aVR")
    for segments in (1, 2):
        framing = OFFER.framing(segments)
        assert (framing.frame_samples, framing.sampling_rate, framing.source_samples) == (2500, None, None)


def test_real_recordings_lose_no_label(test_data: Path):
    listing = list_in(test_data / "physionet2020")
    expected = {}
    for path in (test_data / "physionet2020" / "Training_WFDB").glob("*.hea"):
        (line,) = [line for line in path.read_text().splitlines() if line.startswith("#Dx")]
        expected[path.stem] = set(line.split(": ")[1].split(","))
    assert words_of(listing) == expected
    assert (len(expected), listing.drops, listing.notes) == (150, (), ())
    assert listing.form == "WFDB recordings in Training_WFDB/, text labels"
    counts = Counter(word for words in expected.values() for word in words)
    assert counts == dict(zip(WORDS, (24, 7, 8, 20, 13, 18, 32, 19, 13), strict=True))


def test_real_recordings_with_codes_are_told_from_those_of_other_sets(test_data: Path):
    listing = list_in(test_data / "cinc2021_snomed")
    assert words_of(listing) == {"A0689": {"AF"}, "A1041": {"AF", "LBBB"}, "A2712": {"AF"}, "A5215": {"PAC", "RBBB"}}
    assert listing.notes == (
        "73 recordings of other sets (E 11, HR 17, JS 45) were ignored: CPSC 2018 is A0001 to A6877.",
    )


def test_real_recordings_give_the_frames_that_their_lengths_say(test_data: Path, tmp_path):
    """floor(N / 2500) of each lead, as they are in the files, in mV."""
    listing = list_in(test_data / "physionet2020")
    made = prepared_by(OFFER, listing, NoOptions(), tmp_path)
    at, heights = 0, []
    for entry in listing.entries:
        signal = loadmat(entry.files[1])["val"]  # (12, N)
        for frame in range(signal.shape[1] // 2500):
            expected = signal[:, 2500 * frame : 2500 * (frame + 1)]
            np.testing.assert_array_equal(made.frames[at], np.where(made.valid[at][:, None], expected, 0))
            assert (made.valid[at] == (expected.max(axis=1) > expected.min(axis=1))).all()
            at += 1
        heights.append(np.percentile(np.abs(signal[1]), 99.5) / 1000)
    assert made.frames.shape == (at, 12, 2500)
    assert set(made.gain) == {1000.0}
    assert made.unit == "mV"
    assert made.drops.counts.get("flat", 0) == (~made.valid).sum()
    assert 0.3 < np.median(heights) < 2, "mV: the height of a QRS"


# ---------------------------------------------------------------------------------------------------------------- fuzz


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=st.binary(max_size=60), header=st.binary(max_size=60), data=st.data())
def test_files_of_any_bytes_are_read_or_refused(tmp_path, table, header, data):
    """A damaged download ends in a sentence, not in a traceback of something else."""
    wfdb, structures = tmp_path / "wfdb", tmp_path / "structures"
    if not wfdb.exists():
        write(wfdb, "A0002", length=30)
        write_structure(structures, "A0001", length=30)
        write_structure(structures, "A0002", length=30)
    raw = (structures / "A0001.mat").read_bytes()
    at, length = data.draw(st.integers(128, len(raw))), data.draw(st.integers(0, 40))
    mutated = raw[:at] + data.draw(st.binary(max_size=12)) + raw[at + length :]
    (wfdb / "A0001.hea").write_bytes(b"A0001 12 500 30\n" + header)
    (wfdb / "A0001.mat").write_bytes(mutated)
    (structures / "A0002.mat").write_bytes(mutated)
    (structures / "REFERENCE.csv").write_bytes(table)
    for root in (wfdb, structures):
        try:
            for entry in list_in(root).entries:
                load(entry, NoOptions())
        except (DataError, OSError):
            pass


# ------------------------------------------------------------------------------------------------------------ download


def test_what_is_downloaded_can_be_read(tmp_path, monkeypatch):
    """Seven folders, each with a list of its recordings: all of them end where the reader looks."""
    pages = {}
    for group in range(1, 8):
        place, record = f"training/cpsc_2018/g{group}", f"A000{group}"
        write(tmp_path / "served", record, WORDS[group], seed=group)
        pages[f"{place}/RECORDS"] = Behaviour(f"{record}\n".encode())
        for end in (".hea", ".mat"):
            pages[f"{place}/{record}{end}"] = Behaviour((tmp_path / "served" / f"{record}{end}").read_bytes())
    pages["SHA256SUMS.txt"] = Behaviour(sums_of({name: page.body for name, page in pages.items()}))
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("no_proxy", "*")
    with serve(**pages) as site:
        monkeypatch.setattr(plugin, "FILES", site.url("").rstrip("/"))
        assert main(["data", "download", "physionet2020"]) == 0
    found = list_in(tmp_path / "data" / "physionet2020")
    assert words_of(found) == {f"A000{group}": {WORDS[group]} for group in range(1, 8)}
    assert load(found.entries[0], NoOptions()).samples.shape == (12, 3000)


def test_a_header_that_the_system_cannot_read_today_is_no_broken_one(tmp_path, monkeypatch):
    """It would be left out, and the scores would be those of another data set."""
    write(tmp_path, "A0001")

    def read_header(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("clocs_plugins.physionet2020.listing.read_header", read_header)
    with pytest.raises(PermissionError):
        list_in(tmp_path)
