"""The Cardiology data set: the paper's counts on the real files, every form that a user may have, damaged files."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from real_frames import prepared_by

from clocs_core import DataError, DataNotFound, Entry, Episode, Record
from clocs_core.data.framing import cut_frames, frame_labels
from clocs_core.data.splits import split_patients
from clocs_core.testing import checks_of
from clocs_plugins.cardiology import CardiologyOptions, clocs_datasets
from clocs_plugins.cardiology.files import find_files

(OFFER,) = clocs_datasets()
(TASK,) = OFFER.tasks
ZIP = "CARDIOL_MAY_2017.zip"
LEFT_OUT = "a" * 32 + "_0001"


@pytest.fixture(scope="session")
def real(test_data: Path) -> Path:
    folder = test_data / "cardiology"
    if not (folder / ZIP).is_file():
        pytest.skip(f"no {ZIP} among the real recordings")
    return folder


def scan(root: Path, sudden_brady: str = "drop"):
    return OFFER.scan(root, TASK, CardiologyOptions(sudden_brady))


def content(record: str) -> bytes:
    rng = np.random.default_rng(list(record.encode()))
    return rng.integers(-2048, 2048, 6000).astype("<i2").tobytes()


def episodes(*parts: tuple[int, int, str]) -> bytes:
    return json.dumps({"episodes": [{"onset": a, "offset": b, "rhythm_name": name} for a, b, name in parts]}).encode()


def few() -> dict[str, bytes]:
    """Three recordings as published: one of two rhythms, unsorted; one with two committees; one to leave out."""
    one, two = "b" * 32 + "_0010", "c" * 32 + "_0002"
    return {
        f"{one}.ecg": content(one),
        f"{one}_grp1.episodes.json": episodes((3001, 6000, "AFL"), (1, 3000, "NSR")),
        f"{one}_rev0.episodes.json": episodes((1, 6000, "VT")),
        f"{two}.ecg": content(two),
        f"{two}_grp2.episodes.json": episodes((1, 6000, "VT")),
        f"{two}_grp0.episodes.json": episodes((1, 6000, "AVB_TYPE2")),
        f"{LEFT_OUT}.ecg": content(LEFT_OUT),
        f"{LEFT_OUT}_grp0.episodes.json": episodes((1, 6000, "SUDDEN_BRADY")),
    }


def write_zip(path: Path, files: dict[str, bytes], folder: str = "CARDIOL_MAY_2017/") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(folder + name, data)
    return path


def write_folder(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


# ------------------------------------------------------------------------------------------------------- the real files


def test_the_real_set_has_the_patients_and_frames_of_the_paper(real: Path, tmp_path: Path):
    """7,079 labelled frames of 313 patients, 201/50/62: a reader that arrives elsewhere reads something else."""
    listing = scan(real)
    assert len(listing.entries) == len({entry.patient for entry in listing.entries}) == 313
    assert Counter(drop.reason for drop in listing.drops) == {"no labelled frame": 15}
    assert listing.notes == ()
    parts = split_patients((entry.patient for entry in listing.entries), 0, OFFER.defaults.split)
    assert parts.counts() == {"train": 201, "validation": 50, "test": 62}

    prepared = prepared_by(OFFER, listing, CardiologyOptions(), tmp_path)
    assert prepared.frames.shape == (313 * 23, 1, 2500)
    assert prepared.valid.all()
    assert prepared.unit == "counts"
    counts: Counter[str | None] = Counter()
    for entry in listing.entries:
        for label in frame_labels(entry.label, range(0, 23 * 256, 256), "one_of"):
            counts[None if label is None else TASK.classes[label]] += 1
    assert counts.pop(None) == 120
    assert counts == {
        "AFIB": 1002,
        "AVB": 325,
        "BIGEMINY": 218,
        "EAR": 254,
        "IVR": 197,
        "JUNCTIONAL": 548,
        "NOISE": 604,
        "NSR": 3000,
        "SVT": 306,
        "TRIGEMINY": 232,
        "VT": 47,
        "WENCKEBACH": 346,
    }
    assert tuple(sorted(counts)) == TASK.classes


def test_sudden_bradycardia_can_count_as_av_block_as_its_authors_have_it(real: Path):
    """Then no recording is lost: 328 patients, every one of 7,544 frames labelled."""
    listing = scan(real, "avb")
    assert (len(listing.entries), listing.drops) == (328, ())
    labels = [
        label for entry in listing.entries for label in frame_labels(entry.label, range(0, 23 * 256, 256), "one_of")
    ]
    assert len(labels) == 7544
    assert Counter(labels)[TASK.classes.index("AVB")] == 325 + (7544 - 7079)


def test_signals_and_labels_are_those_of_the_file(real: Path):
    """To the last bit, for every recording; labels by a plain loop over the committee's file."""
    names = {"AFL": "AFIB", "AVB_TYPE2": "AVB"}
    with zipfile.ZipFile(real / ZIP) as archive:
        members = {name.split("/")[-1]: name for name in archive.namelist()}
        for entry in scan(real).entries:
            record = OFFER.load(entry, CardiologyOptions())
            assert record.samples.dtype == np.int16
            assert record.samples.shape == (1, 6000)
            assert record.sampling_rate == 200
            assert record.samples.tobytes() == archive.read(members[f"{entry.record}.ecg"])
            (labels,) = [name for name in members if name.startswith(f"{entry.record}_grp")]
            expected = [None] * 6000
            for one in json.loads(archive.read(members[labels]))["episodes"]:
                for sample in range(one["onset"] - 1, one["offset"]):
                    expected[sample] = one["rhythm_name"]
            labels = frame_labels(entry.label, range(0, 6000, 50), "one_of")
            for sample, label in zip(range(0, 6000, 50), labels, strict=True):
                name = names.get(expected[sample], expected[sample])
                assert (None if name == "SUDDEN_BRADY" else name) == (None if label is None else TASK.classes[label])


def test_flat_lead_frames_are_kept_and_are_all_noise(real: Path):
    """They are among the paper's 7,079; dropped as flat, 3 frames of NOISE would be missing."""
    flat = []
    for entry in scan(real).entries:
        record = OFFER.load(entry, CardiologyOptions())
        frames = cut_frames(record, OFFER.framing(1))
        assert frames.valid.all()
        for frame in range(23):
            window = record.samples[0, frame * 256 : frame * 256 + 256]
            if window.min() == window.max():
                flat.append(frame_labels(entry.label, [frame * 256], "one_of")[0])
    assert flat == [TASK.classes.index("NOISE")] * 3


def test_the_offer_keeps_its_promises(real: Path):
    """The conformance kit, on the real zip file."""
    for check in checks_of(OFFER, root=real):
        check.run()


# ----------------------------------------------------------------------------------------------------------- every form


@pytest.mark.parametrize("form", ["zip", "folder with zip", "folder with renamed zip", "folder", "folder below"])
def test_every_form_gives_the_same_recordings(tmp_path: Path, form: str):
    """People point at the file they downloaded, at the folder it is in, or at what they unpacked."""
    root = tmp_path / "data"
    match form:
        case "zip":
            root = write_zip(tmp_path / ZIP, few())
        case "folder with zip":
            write_zip(root / ZIP, few())
        case "folder with renamed zip":
            write_zip(root / "another.zip", {"readme.txt": b"not this one"})
            write_zip(root / "hannun.zip", few(), folder="")
        case "folder":
            write_folder(root, few())
        case "folder below":
            write_folder(root / "CARDIOL_MAY_2017", few())
    listing = scan(root)
    assert [entry.record for entry in listing.entries] == ["b" * 32 + "_0010", "c" * 32 + "_0002"]
    assert [(drop.record, drop.reason) for drop in listing.drops] == [(LEFT_OUT, "no labelled frame")]
    assert listing.form == (
        "zip file hannun.zip, read without unpacking"
        if form == "folder with renamed zip"
        else f"zip file {ZIP}, read without unpacking"
        if "zip" in form
        else f"unpacked folder {'data' if form == 'folder' else 'CARDIOL_MAY_2017'}/"
    )
    one, two = listing.entries
    assert one.patient == "b" * 32
    assert one.label == (Episode(0, 2999, TASK.classes.index("NSR")), Episode(3000, 5999, TASK.classes.index("AFIB")))
    assert two.label == (Episode(0, 5999, TASK.classes.index("AVB")),)  # of grp0, not of grp2
    for entry in listing.entries:
        record = OFFER.load(entry, CardiologyOptions())
        assert record.samples.tobytes() == content(entry.record)
        assert (record.unit, record.gain, record.channels) == ("counts", 1.0, ("ECG",))


def test_records_of_one_patient_come_in_the_order_of_their_numbers(tmp_path: Path):
    """Sorted as text, _10 would come before _9."""
    files = {}
    for number in ("10", "9", "0011"):
        files |= {f"p_{number}.ecg": content(number), f"p_{number}_grp0.episodes.json": episodes((1, 6000, "NSR"))}
    assert [entry.record for entry in scan(write_folder(tmp_path, files)).entries] == ["p_9", "p_10", "p_0011"]


def test_what_finder_adds_to_a_zip_file_is_no_recording(tmp_path: Path):
    """Its "__MACOSX/._x.ecg" ends like a recording and holds none; nor is its "._x_grp0" a label file."""
    files = few()
    files |= {f"../__MACOSX/._{name}": b"1234" for name in files}
    listing = scan(write_zip(tmp_path / ZIP, files), "avb")
    assert (len(listing.entries), listing.drops, listing.notes) == (3, (), ())


def test_a_zip_file_packed_in_another_way_is_refused(tmp_path: Path):
    """LZMA lets a file of a few bytes ask for gigabytes; the published one does not use it."""
    with zipfile.ZipFile(tmp_path / ZIP, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x_0001.ecg", content("x"))
    (entry,) = scan(tmp_path).entries
    with pytest.raises(DataError, match=r"x_0001.ecg in CARDIOL_MAY_2017.zip is packed by an unknown method"):
        OFFER.load(entry, CardiologyOptions())


def test_a_member_that_names_a_path_outside_is_read_where_it_is_and_written_nowhere(tmp_path: Path):
    """Nothing is ever unpacked, so "../../x" is just a name."""
    inside = tmp_path / "deep" / "inside"
    path = write_zip(inside / ZIP, few(), folder="../../")
    before = sorted(tmp_path.rglob("*"))
    listing = scan(path)
    assert OFFER.load(listing.entries[0], CardiologyOptions()).samples.shape == (1, 6000)
    assert sorted(tmp_path.rglob("*")) == before


# ----------------------------------------------------------------------------------------------------- what is left out


def one_recording(tmp_path: Path, labels: bytes | None, data: bytes | None = None):
    files = {"x_0001.ecg": content("x") if data is None else data}
    if labels is not None:
        files["x_0001_grp0.episodes.json"] = labels
    return scan(write_folder(tmp_path, files))


@pytest.mark.parametrize(
    ("labels", "data", "reason"),
    [
        (b"", None, "broken label file"),
        (b'{"episodes": 3}', None, "broken label file"),
        (b'{"episodes": [{"onset": 1, "offset": 2}]}', None, "broken label file"),
        (b"[" * 200_000, None, "broken label file"),
        (b'{"episodes": [{"onset": true, "offset": 9, "rhythm_name": "NSR"}]}', None, "broken label file"),
        (b'{"episodes": [{"onset": 1, "offset": NaN, "rhythm_name": "NSR"}]}', None, "broken label file"),
        (episodes((0, 100, "NSR")), None, "broken label file"),
        (episodes((100, 99, "NSR")), None, "broken label file"),
        (b" " * 1_000_001, None, "broken label file"),
        (episodes(), None, "no labelled frame"),
        (episodes((2, 256, "NSR")), None, "no labelled frame"),
        (episodes((5890, 6000, "NSR")), None, "no labelled frame"),
        (episodes((7000, 8000, "NSR")), None, "no labelled frame"),
        (episodes((1, 6000, "NSR")), b"123", "half a sample"),
        (episodes((1, 6000, "NSR")), b"", "empty file"),
        (episodes((1, 6000, "NSR")), b"\0" * 510, "no labelled frame"),
    ],
)
def test_a_recording_that_cannot_serve_is_a_drop_with_its_reason(tmp_path: Path, labels, data, reason):
    """One damaged file costs one recording, and the report says which and why."""
    listing = one_recording(tmp_path, labels, data)
    assert [(drop.reason, drop.record) for drop in listing.drops] == [(reason, "x_0001")]
    assert not listing.entries


@pytest.mark.parametrize("part", [(1, 1, "NSR"), (257, 257, "NSR"), (200, 300, "NSR"), (5633, 9000, "NSR")])
def test_an_episode_that_holds_the_first_sample_of_a_window_is_enough(tmp_path: Path, part):
    """Windows begin at 1, 257, … 5633 of the file's own count."""
    (entry,) = one_recording(tmp_path, episodes(part)).entries
    (episode,) = entry.label
    assert (episode.onset, episode.offset) == (part[0] - 1, min(part[1], 6000) - 1)


def test_unknown_rhythms_are_told_once(tmp_path: Path):
    """A name that is mapped to nothing must not vanish in silence."""
    listing = one_recording(tmp_path, episodes((1, 3000, "NSR"), (3001, 4000, "TORSADES"), (4001, 6000, "TORSADES")))
    assert listing.notes == ("2 episodes have a rhythm that is not known here and give no label: TORSADES (2).",)
    assert listing.entries[0].label == (Episode(0, 2999, TASK.classes.index("NSR")),)


def test_a_recording_without_labels_serves_pre_training(tmp_path: Path):
    """A good signal is not thrown away for want of a label."""
    listing = one_recording(tmp_path, None)
    assert listing.entries[0].label is None
    assert listing.notes == ("1 recordings have no label file (_grp*.episodes.json) and serve pre-training only.",)


def test_recordings_that_a_partial_copy_lacks_are_one_note(tmp_path: Path):
    """Two hundred drops would say the same two hundred times."""
    files = few()
    del files[f"{LEFT_OUT}.ecg"], files["c" * 32 + "_0002.ecg"]
    listing = scan(write_folder(tmp_path, files))
    assert listing.notes == ("2 of 3 recordings with a label file are not there.",)
    assert (len(listing.entries), listing.drops) == (1, ())


# -------------------------------------------------------------------------------------------------- nothing, and damage


def test_a_folder_without_the_data_set_says_what_was_looked_for(tmp_path: Path):
    for name in "edcba":
        (tmp_path / name).write_text("")
    with pytest.raises(DataNotFound, match=r"CARDIOL_MAY_2017.zip.*There is a, b, c, d, …\. Download"):
        scan(tmp_path)
    with pytest.raises(DataNotFound, match="There is nothing"):
        scan(tmp_path / "nowhere")
    (tmp_path / "noise.ecg").write_bytes(b"12")
    with pytest.raises(DataNotFound, match=r"named like a recording, <patient>_<number>.ecg; there is a, b, c, d"):
        scan(tmp_path)


@pytest.mark.parametrize("keep", [0, 10, 0.5, -1])
def test_a_zip_file_that_is_cut_short_says_so(tmp_path: Path, keep):
    """The table of contents is at the end, so nothing of it can be read; the user should download again."""
    path = write_zip(tmp_path / ZIP, few())
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep) if isinstance(keep, float) else keep])
    with pytest.raises(DataError, match=r"not a whole zip file .*download it again"):
        scan(tmp_path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path):
    """11 MB of zeros are 11 kB in a zip file."""
    files = few()
    files[f"{LEFT_OUT}.ecg"] = bytes(11_000_000)
    path = write_zip(tmp_path / ZIP, files)
    assert path.stat().st_size < 100_000
    listing = scan(path)
    assert [(drop.record, drop.reason) for drop in listing.drops] == [(LEFT_OUT, "more than 10 MB")]
    with pytest.raises(DataError, match="has 11,000,000 bytes, expected at most 10,000,000"):
        OFFER.load(Entry(LEFT_OUT, "a", None, [path]), CardiologyOptions())


def test_a_zip_file_that_is_replaced_is_opened_anew(tmp_path: Path):
    """Its table of contents is kept between loads; another file of the same name has another."""
    path = write_zip(tmp_path / ZIP, few())
    assert len(scan(path).entries) == 2
    files = few()
    del files["b" * 32 + "_0010.ecg"]
    path.unlink()
    assert len(scan(write_zip(path, files)).entries) == 1


def test_damage_inside_a_zip_file_is_found_by_its_checksum(tmp_path: Path):
    """A changed byte in a signal must not become a QRS."""
    path = write_zip(tmp_path / ZIP, few())
    (entry, _) = scan(path).entries
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo(f"CARDIOL_MAY_2017/{entry.record}.ecg")
    data = bytearray(path.read_bytes())
    data[member.header_offset + 30 + len(member.filename) + 500] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"_0010.ecg in CARDIOL_MAY_2017.zip is damaged .*Download it again"):
        OFFER.load(entry, CardiologyOptions())


def outcome(root: Path, entries=()):
    """Scan, then load: anything but a ValueError or an OSError is a bug."""
    with suppress(ValueError, OSError):
        entries = [*scan(root, "avb").entries, *entries]
    for entry in entries:
        try:
            record = OFFER.load(entry, CardiologyOptions())
        except (ValueError, OSError):
            continue
        assert isinstance(record, Record)


def test_a_member_without_a_name_is_passed_over(tmp_path: Path):
    """A zero where its first letter was; the others are read."""
    path = write_zip(tmp_path / ZIP, few())
    whole, content = len(scan(path).entries), bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 46] = 0  # names stand behind 46 bytes of the directory's entry
    path.unlink()
    path.write_bytes(content)
    assert 0 < len(scan(path).entries) + len(scan(path).drops) <= whole


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_of_a_zip_file_is_worse_than_an_error(tmp_path: Path, data: st.DataObject):
    """Sizes, offsets and methods in a zip file are claims; a wrong one must not crash or hang a preparation."""
    path = write_zip(tmp_path / ZIP, few())
    entries = scan(path, "avb").entries
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.one_of(st.integers(0, len(content) - 1), st.integers(directory, len(content) - 1)))
        content[place] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, content[place] ^ 1]))
    path.unlink()
    path.write_bytes(content[: data.draw(st.one_of(st.none(), st.integers(0, len(content))))])
    outcome(path, entries)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    labels=st.one_of(
        st.binary(max_size=50),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["NSR", "VT", ""])),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.dictionaries(st.sampled_from(["episodes", "onset", "offset", "rhythm_name"]), inner),
            ),
            max_leaves=12,
        ).map(lambda held: json.dumps(held).encode()),
        st.lists(st.tuples(st.integers(-3, 7000), st.integers(-3, 7000), st.sampled_from(["NSR", "VT", "X"]))).map(
            lambda parts: episodes(*parts)
        ),
    ),
    data=st.binary(max_size=1200),
)
def test_no_label_file_is_worse_than_a_drop(tmp_path: Path, labels: bytes, data: bytes):
    """Whatever stands in it, the other recordings go on; what comes out are episodes within the recording."""
    root = write_folder(tmp_path / "set", {"x_0001.ecg": data, "x_0001_grp0.episodes.json": labels})
    listing = scan(root)
    assert len(listing.entries) + len(listing.drops) == 1
    for entry in listing.entries:
        starts = [episode.onset for episode in entry.label]
        assert starts == sorted(starts)
        assert all(0 <= episode.onset <= episode.offset < len(data) // 2 for episode in entry.label)
    outcome(root)


def test_a_zip_file_that_the_system_cannot_read_today_is_not_damaged(tmp_path: Path, monkeypatch):
    """A damaged member is dropped; one on a failing disk must not be."""
    with zipfile.ZipFile(tmp_path / "CARDIOL_MAY_2017.zip", "w") as archive:
        archive.writestr("a_0001.ecg", b"12")

    def fail(*_):
        raise OSError(5, "Input/output error")

    files = find_files(tmp_path)
    monkeypatch.setattr(zipfile.ZipFile, "open", fail)
    with pytest.raises(OSError, match="Input/output error") as caught:
        files.read("a_0001.ecg", 100)
    assert not isinstance(caught.value, DataError)
