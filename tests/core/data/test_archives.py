"""Archives are unpacked whole or not at all, and never outside of their folder."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clocs_core.data import archives, regular_file
from clocs_core.data.archives import is_archive, unpack
from clocs_core.errors import DataError


def make_zip(path: Path, members: dict[str, bytes], mode: int | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.filename = name  # as it is: ZipInfo would tidy it up
            info.compress_type = zipfile.ZIP_DEFLATED
            if mode is not None:
                info.external_attr = mode << 16
            made.writestr(info, data)
    return path


def make_tar(path: Path, members: dict[str, bytes], **fields: object) -> Path:
    with tarfile.open(path, "w:gz") as made:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for field, value in fields.items():
                setattr(info, field, value)
            made.addfile(info, io.BytesIO(data))
    return path


MAKERS = {"x.zip": make_zip, "x.tar.gz": make_tar}
FILES = {"a/b/one.txt": b"1" * 1000, "a/two.txt": b"", "three.txt": os.urandom(3000)}


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def nothing_happened(folder: Path, archive: Path) -> bool:
    return [path.name for path in folder.iterdir()] == [archive.name]


@pytest.mark.parametrize("name", MAKERS)
def test_what_was_packed_comes_out(tmp_path: Path, name: str):
    archive = MAKERS[name](tmp_path / name, FILES)
    assert is_archive(archive)
    assert unpack(archive, tmp_path / "out") == 3
    assert tree(tmp_path / "out") == FILES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", name]
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o755


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_there_already_stays_except_for_files_of_the_same_name(tmp_path: Path, name: str):
    out = tmp_path / "out"
    (out / "a").mkdir(parents=True)
    (out / "a" / "two.txt").write_bytes(b"old")
    (out / "a" / "mine.txt").write_bytes(b"mine")
    unpack(MAKERS[name](tmp_path / name, FILES), out)
    assert tree(out) == FILES | {"a/mine.txt": b"mine"}


def test_a_folder_in_the_way_of_a_file_is_not_deleted(tmp_path: Path):
    (tmp_path / "out" / "three.txt").mkdir(parents=True)
    with pytest.raises(DataError, match="Move it away"):
        unpack(make_zip(tmp_path / "x.zip", FILES), tmp_path / "out")


def test_a_file_in_the_way_of_a_folder_is_not_deleted(tmp_path: Path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_bytes(b"mine")
    with pytest.raises(DataError, match="has a folder 'a' in the place of a file"):
        unpack(make_zip(tmp_path / "x.zip", {"a/b": b"1"}), tmp_path / "out")
    assert tree(tmp_path / "out") == {"a": b"mine"}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("members", [{"a": b"", "b": b"", "c": b""}, {"a/": b"", "b/": b"", "c/": b""}])
def test_members_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, members: dict[str, bytes]):
    monkeypatch.setattr(archives, "_MEMBERS", 2)
    archive = MAKERS[name](tmp_path / name, members)
    with pytest.raises(DataError, match="more than 2 members"):
        unpack(archive, tmp_path / "out")
    assert nothing_happened(tmp_path, archive)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(
    "evil", ["../out.txt", "/abs.txt", "a/../../b", "..", "C:/x", "C:\\x", "..\\x", "a/.. /b", "...", "a\nb", "a/\x01"]
)
def test_no_path_leads_out(tmp_path: Path, maker: str, evil: str):
    archive = MAKERS[maker](tmp_path / maker, {"good.txt": b"1", evil: b"2"})
    with pytest.raises(DataError, match="would write to"):
        unpack(archive, tmp_path / "out")
    assert nothing_happened(tmp_path, archive)


NAMES = st.text(st.sampled_from("ab./\\: \0\n~C…\udcff") | st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(NAMES, min_size=1, max_size=4), st.sampled_from(sorted(MAKERS)))
def test_whatever_members_are_called_nothing_is_written_elsewhere(tmp_path_factory, names: list[str], maker: str):
    """Either all of it is in the folder, or nothing is anywhere."""
    place = tmp_path_factory.mktemp("unpack")
    try:
        archive = MAKERS[maker](place / maker, dict.fromkeys(names, b"x"))
    except (UnicodeEncodeError, ValueError):
        return  # cannot even be packed
    try:
        unpack(archive, place / "inner" / "out")
    except DataError:
        assert not (place / "inner").exists() or not list((place / "inner").iterdir())
    else:
        assert all(data == b"x" for data in tree(place / "inner" / "out").values())
        assert [path.name for path in (place / "inner").iterdir()] == ["out"]
    assert sorted(path.name for path in place.iterdir()) in ([maker], sorted([maker, "inner"]))


def test_links_are_refused(tmp_path: Path):
    """A link to /etc, and then a file through it, writes to /etc."""
    zipped = make_zip(tmp_path / "x.zip", {"link": b"/etc"}, stat.S_IFLNK | 0o777)
    with pytest.raises(DataError, match="has a link"):
        unpack(zipped, tmp_path / "out")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        tarred = make_tar(tmp_path / "x.tar.gz", {"link": b""}, type=kind, linkname="/etc")
        with pytest.raises(DataError, match="has a link or a device"):
            unpack(tarred, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", MAKERS)
def test_a_bomb_is_not_unpacked(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(regular_file, "_HARMLESS", 100_000)
    archive = MAKERS[name](tmp_path / name, {"zeros": bytes(5_000_000)})
    with pytest.raises(DataError, match="more than 100 times its size"):
        unpack(archive, tmp_path / "out")
    assert nothing_happened(tmp_path, archive)


def test_a_header_of_gigabytes_is_not_read_into_memory(tmp_path: Path):
    """A tar may say that the name of its next member is 1 GB long, and gzip packs that into a megabyte."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    archive = tmp_path / "x.tar.gz"
    with gzip.open(archive, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT))
        file.write(bytes(10_000_000))
    with pytest.raises(DataError, match=r"damaged: a header of 1,073,741,824 bytes"):
        unpack(archive, tmp_path / "out")


def test_a_member_that_lies_about_its_size_is_damaged(tmp_path: Path):
    archive = make_zip(tmp_path / "x.zip", {"a": b"1" * 5000})
    raw = bytearray(archive.read_bytes())
    place = raw.rindex((5000).to_bytes(4, "little"))
    raw[place : place + 4] = (9000).to_bytes(4, "little")
    archive.write_bytes(raw)
    with pytest.raises(DataError, match="damaged"):
        unpack(archive, tmp_path / "out")
    assert nothing_happened(tmp_path, archive)


@pytest.mark.parametrize("name", MAKERS)
def test_a_member_twice_or_as_file_and_folder_is_refused(tmp_path: Path, name: str):
    for members in ({"a": b"1", "./a": b"2"}, {"a": b"1", "a/b": b"2"}, {"a/b": b"2", "a": b"1"}):
        with pytest.raises(DataError, match="not unpacked"):
            unpack(MAKERS[name](tmp_path / name, members), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_archive_with_a_password_is_left_to_the_user(tmp_path: Path):
    archive = make_zip(tmp_path / "x.zip", {"a": b"1"})
    raw = bytearray(archive.read_bytes())
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(raw)
    with pytest.raises(DataError, match="password"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("name", [*MAKERS, "x.tar", "x.tar.xz", "x.tar.bz2"])
@pytest.mark.parametrize("content", [b"", b"nonsense", bytes(600), b"\x1f\x8b\x08\x00rubbish", b"PK\x05\x06?"])
def test_what_is_no_archive_is_said_to_be_damaged(tmp_path: Path, name: str, content: bytes):
    (tmp_path / name).write_bytes(content)
    if name == "x.tar" and content == bytes(600):
        assert unpack(tmp_path / name, tmp_path / "out") == 0  # a tar of zeros is an empty one
        return
    with pytest.raises(DataError, match="damaged"):
        unpack(tmp_path / name, tmp_path / "out")


@settings(max_examples=120)
@given(st.data(), st.sampled_from(sorted(MAKERS)))
def test_a_spoilt_archive_gives_all_or_nothing(tmp_path_factory, data, maker: str):
    place = tmp_path_factory.mktemp("spoilt")
    archive = MAKERS[maker](place / maker, FILES)
    raw = bytearray(archive.read_bytes())
    if data.draw(st.booleans(), "cut"):
        del raw[data.draw(st.integers(0, len(raw) - 1), "at") :]
    else:
        for _ in range(data.draw(st.integers(1, 4), "changes")):
            raw[data.draw(st.integers(0, len(raw) - 1), "place")] = data.draw(st.integers(0, 255), "byte")
    archive.write_bytes(raw)
    try:
        unpack(archive, place / "out")
    except DataError:
        assert nothing_happened(place, archive)
    else:
        assert sorted(tree(place / "out").values()) == sorted(FILES.values())


@pytest.mark.parametrize(("name", "library"), [("x.zip", shutil), ("x.tar.gz", tarfile)])
def test_a_full_disk_is_no_fault_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, library):
    archive = MAKERS[name](tmp_path / name, FILES)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(library, "copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        unpack(archive, tmp_path / "out")
    assert nothing_happened(tmp_path, archive)
