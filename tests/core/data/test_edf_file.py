"""EDF and BDF, written by hand: names, units and rates come from the header, and samples are read by window."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BufferedReader, FileIO
from pathlib import Path

import numpy as np
import pytest
from made_files import wave, write_edf

from clocs_core.data import edf_file, edf_records
from clocs_core.data.edf_file import open_edf
from clocs_core.data.recording import Wish
from clocs_core.data.signal_file import read_signal_file
from clocs_core.errors import DataError

Change = Callable[[bytes], bytes]
COUNT, DURATION = slice(236, 244), slice(244, 252)
CHANNELS = 3  # of the files here, with the annotations


def put(place: slice, text: bytes) -> Change:
    """Return a change of one field of a file."""

    def change(raw: bytes) -> bytes:
        width = place.stop - place.start
        assert len(text) <= width
        return raw[: place.start] + text.ljust(width) + raw[place.stop :]

    return change


def of_channel(before: int, width: int, channel: int) -> slice:
    """Return the place of a field of a channel; `before`: widths of the fields ahead of it, of one channel."""
    start = 256 + before * CHANNELS + width * channel
    return slice(start, start + width)


def changed(path: Path, *changes: Change) -> Path:
    raw = path.read_bytes()
    for change in changes:
        raw = change(raw)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize(("name", "step"), [("a.edf", 4 / 65_535), ("a.bdf", 4 / 16_777_215)])
@pytest.mark.parametrize("piece", [1, 4_000, 1 << 24])
def test_samples_names_unit_rate_and_patient_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, step: float, piece: int
) -> None:
    """However many records are decoded at once."""
    monkeypatch.setattr(edf_file, "PIECE", piece)
    samples = wave(250)
    path = write_edf(tmp_path / name, samples, 250, "p_7", ("ECG I", "EEG,x"), ("mV", "uV"))
    held = open_edf(path, Wish())
    assert (held.channels, held.unit, held.sampling_rate, held.length) == (("ECG I", "EEG x"), "mV", 250.0, 2500)
    assert (held.patient, held.notes) == ("p 7", ())
    np.testing.assert_allclose(held.read(0, 2500).samples, samples, atol=0.51 * step)
    for start, stop in ((700, 900), (0, 1), (249, 251), (250, 500), (2499, 2500), (10, 10)):
        np.testing.assert_allclose(held.read(start, stop).samples, samples[:, start:stop], atol=0.51 * step)
    with pytest.raises(DataError, match="ends before sample 2,501"):
        held.read(2400, 2501)


def test_only_the_window_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_edf(tmp_path / "a.edf", wave(100), 100)
    asked: list[tuple[int, int]] = []

    class Watched(BufferedReader):
        def read(self, size: int | None = -1, /) -> bytes:
            asked.append((self.tell(), size or 0))
            return super().read(size)

    monkeypatch.setattr(edf_file, "open_regular", lambda path, _: Watched(FileIO(path)))
    read_signal_file(path, Wish(("II",)), 200, 250)
    head, record = 256 * (CHANNELS + 1), 2 * (100 + 100 + 30)
    assert asked == [(0, 256), (0, head), (head, record), (head + 2 * record, record)]


@pytest.mark.parametrize("change", [put(slice(8, 88), b"X"), put(slice(8, 88), b""), put(slice(192, 236), b"")])
def test_a_patient_who_is_not_named_is_nobody(tmp_path: Path, change: Change) -> None:
    """EDF without the plus has free text there: often a name, or the same words in all files."""
    path = write_edf(tmp_path / "a.edf", wave(100), 100, "p7")
    assert open_edf(path, Wish()).patient == "p7"
    assert open_edf(changed(path, change), Wish()).patient == ""


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_a_header_with_letters_beyond_ascii_is_read(tmp_path: Path, encoding: str) -> None:
    """EDF allows ASCII only, and devices write names of patients and µV."""
    samples = wave(100)
    path = write_edf(tmp_path / "a.edf", samples, 100, "p7", ("Füße", "II"), ("mV", "mV"))
    unit, low, high = of_channel(16 + 80, 8, 1), of_channel(16 + 80 + 8, 8, 1), of_channel(16 + 80 + 16, 8, 1)
    name = put(of_channel(0, 16, 0), "Füße".encode(encoding))
    held = open_edf(
        changed(path, name, put(unit, "µV".encode(encoding)), put(low, b"-2000"), put(high, b"2000")), Wish()
    )
    assert (held.channels, held.unit) == (("Füße", "II"), "mV")
    np.testing.assert_allclose(held.read(0, 1000).samples, samples, atol=4 / 65_535)


def test_fields_that_are_filled_with_zeros_are_read(tmp_path: Path) -> None:
    path = write_edf(tmp_path / "a.edf", wave(100), 100)
    held = open_edf(changed(path, put(COUNT, b"10".ljust(8, b"\0")), put(of_channel(0, 16, 0), b"I\0\0")), Wish())
    assert (held.channels, held.length) == (("I", "II"), 1000)


@pytest.mark.parametrize(
    ("change", "length", "said"),
    [
        (lambda raw: raw + b"more", 1000, ""),
        (put(COUNT, b"7"), 700, "Records behind the last one that the header counts are not read."),
        (put(COUNT, b"-1"), 1000, "The header does not say how many records there are"),
    ],
)
def test_what_lies_behind_the_last_record_is_not_read(tmp_path: Path, change: Change, length: int, said: str) -> None:
    """A recorder that was switched off leaves -1, and several leave bytes at the end."""
    samples = wave(100)
    held = open_edf(changed(write_edf(tmp_path / "a.edf", samples, 100), change), Wish())
    assert held.length == length
    assert bool(said) == bool(held.notes)
    assert all(note.startswith(said) for note in held.notes)
    np.testing.assert_allclose(held.read(0, length).samples, samples[:, :length], atol=4 / 65_535)


@pytest.mark.parametrize(
    "change",
    [
        put(of_channel(16 + 80 + 8 * 3, 8, 0), b"32767"),  # the digital minimum is the maximum
        put(of_channel(16 + 80 + 8, 8, 0), b"2"),  # the physical minimum is the maximum
        put(of_channel(16 + 80 + 8, 8, 0), b"low"),
        put(of_channel(16 + 80 + 8, 8, 0), b"nan"),
        put(of_channel(16 + 80, 8, 0), b"Boolean"),  # BioSemi's marks
    ],
)
def test_a_channel_without_a_range_of_values_or_of_marks_is_left_out(tmp_path: Path, change: Change) -> None:
    """Files of CHB-MIT have such channels between those of the scalp."""
    samples = wave(100)
    held = open_edf(changed(write_edf(tmp_path / "a.edf", samples, 100), change), Wish())
    assert held.channels == ("II",)
    assert held.notes == ("Channels of marks, or without a range of values, are left out: I.",)
    np.testing.assert_allclose(held.read(0, 1000).samples, samples[1:], atol=4 / 65_535)


def test_a_file_of_annotations_alone_holds_no_signal(tmp_path: Path) -> None:
    path = write_edf(tmp_path / "a.edf", np.empty((0, 100)), 100, names=())
    with pytest.raises(DataError, match="holds no signal"):
        open_edf(path, Wish())


def discontinuous(path: Path, begins: dict[int, str]) -> Path:
    """Make a file of ten records of 1 s one with gaps: records begin at these times."""
    changed(path, put(slice(192, 236), path.suffix[1:].upper().encode() + b"+D"))
    raw = path.read_bytes()
    for record, begin in begins.items():
        old, new = (f"+{text}\x14\x14".encode().ljust(8, b"\0") for text in (record, begin))
        assert raw.count(old) == 1
        raw = raw.replace(old, new)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("piece", [1, 1200, 1 << 24])
@pytest.mark.parametrize("suffix", ["edf", "bdf"])
def test_gaps_of_a_discontinuous_file_are_missing_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, piece: int
) -> None:
    monkeypatch.setattr(edf_file, "PIECE", piece)
    monkeypatch.setattr(edf_records, "PIECE", piece)
    samples, rate = wave(100), 100
    path = write_edf(tmp_path / f"a.{suffix}", samples, rate)
    held = open_edf(discontinuous(path, {7: "9.5", 8: "10.5", 9: "20"}), Wish())
    assert (held.length, held.notes) == (2100, ("Gaps between records (EDF+D) are read as missing samples.",))
    expected = np.full((2, 2100), np.nan)
    for record, second in enumerate((0, 1, 2, 3, 4, 5, 6, 9.5, 10.5, 20)):
        for sample in range(rate):
            expected[:, round(second * rate) + sample] = samples[:, record * rate + sample]
    for start, stop in (
        (0, 2100),
        (650, 970),
        (700, 900),
        (1149, 1151),
        (1999, 2001),
        (2099, 2100),
        (0, 0),
        (950, 1050),
    ):
        np.testing.assert_allclose(held.read(start, stop).samples, expected[:, start:stop], atol=4 / 65_535)


@pytest.mark.parametrize("begins", [{}, {3: "3.004"}, {3: "2.996", 4: "4.004"}])
def test_a_discontinuous_file_without_gaps_is_like_any_other(tmp_path: Path, begins: dict[int, str]) -> None:
    """A clock that is not exact makes no gap: the records follow each other within a sample."""
    samples = wave(100)
    held = open_edf(discontinuous(write_edf(tmp_path / "a.edf", samples, 100), begins), Wish())
    assert (held.length, held.notes) == (1000, ())
    np.testing.assert_allclose(held.read(0, 1000).samples, samples, atol=4 / 65_535)


@pytest.mark.parametrize(
    ("begins", "says"),
    [
        ({9: "5"}, "its records go back in time"),
        ({9: "nan"}, "its records go back in time"),
        ({9: "199"}, r"holds 10 s of signals in 199 s \(EDF\+D\): write a file"),
        ({4: "x"}, "its record 5 does not say when it begins"),
    ],
)
def test_a_discontinuous_file_that_makes_no_sense_is_refused(tmp_path: Path, begins: dict[int, str], says: str) -> None:
    path = discontinuous(write_edf(tmp_path / "a.edf", wave(100), 100), begins)
    with pytest.raises(DataError, match=says):
        open_edf(path, Wish())


def test_a_discontinuous_file_without_annotations_is_refused(tmp_path: Path) -> None:
    path = discontinuous(write_edf(tmp_path / "a.edf", wave(100), 100), {})
    changed(path, put(of_channel(0, 16, 2), b"Marks"))
    with pytest.raises(DataError, match="no channel that says when its records begin"):
        open_edf(path, Wish())


def test_a_file_that_is_cut_after_it_was_opened_is_an_error(tmp_path: Path) -> None:
    path = write_edf(tmp_path / "a.edf", wave(100), 100)
    held = open_edf(path, Wish())
    os.truncate(path, 3000)
    with pytest.raises(DataError, match="ends before its record 10"):
        held.read(0, 1000)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda raw: raw[:-10], "may have been cut short"),
        (lambda raw: raw[:100], "does not begin as EDF"),
        (lambda raw: b"\x89HDF" + raw[4:], "does not begin as EDF"),
        (put(COUNT, b"many"), "its header says 'many' where a number belongs"),
        (put(COUNT, b"-2"), "describes -2 records"),
        (put(COUNT, b"11"), "describes 11 records"),
        (put(DURATION, b"0"), "holds no signal: its records have 230 samples in 0 s"),
        (put(DURATION, b"nan"), "holds no signal"),
        (put(slice(252, 256), b"2"), "its header has 1,024 bytes, for 2 channels"),
        (put(of_channel(216, 8, 0), b"-100"), "holds no signal"),
        (put(of_channel(216, 8, 0), b"99999999"), "may have been cut short"),
        (put(of_channel(216, 8, 0), b"x"), "where a number belongs"),
    ],
)
def test_damage_is_one_sentence_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], change: Change, says: str
) -> None:
    path = changed(write_edf(tmp_path / "a.edf", wave(100), 100), change)
    capfd.readouterr()
    with pytest.raises(DataError, match=says):
        open_edf(path, Wish())
    assert capfd.readouterr() == ("", "")
