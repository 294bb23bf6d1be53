"""Arrays are found without being read, mapped where that can be, and trusted in nothing that their file cannot hold."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from clocs_core.data import numpy_file, regular_file, stored_arrays
from clocs_core.data.array_file import open_array_file
from clocs_core.errors import DataError

SIGNAL = np.arange(24, dtype=">i2").reshape(2, 3, 4)


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_not_compressed_is_mapped(tmp_path: Path, order: str):
    array = np.asarray(SIGNAL, order=order)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", first=np.zeros(7), x=array, empty=np.zeros((0, 3)))
    for name, member in (("a.npy", ""), ("a.npz", "x")):
        stored = open_array_file(tmp_path / name).arrays[member]
        assert (stored.shape, stored.dtype) == (array.shape, array.dtype)
        assert isinstance(stored.open(), np.memmap)
        assert np.array_equal(stored.open(), array)
    assert open_array_file(tmp_path / "a.npz").arrays["empty"].open().shape == (0, 3)


def test_what_is_compressed_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    np.savez_compressed(tmp_path / "a.npz", x=SIGNAL, fs=100, channels=[b"I", "µ".encode(), b"V1"], unit="mV")
    file = open_array_file(tmp_path / "a.npz")
    assert (file.signals, file.channels, file.sampling_rate, file.unit) == (("x",), ("I", "µ", "V1"), 100.0, "mV")
    assert np.array_equal(file.arrays["x"].open(), SIGNAL)
    monkeypatch.setattr(numpy_file, "open_regular", lambda *_: pytest.fail("unpacked again"))
    assert open_array_file(tmp_path / "a.npz") is file
    assert np.array_equal(file.arrays["x"].open(), SIGNAL)


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path):
    for length in (5, 6):
        np.savez_compressed(tmp_path / "a.npz", x=np.arange(length))
        assert open_array_file(tmp_path / "a.npz").arrays["x"].open().tolist() == list(range(length))


def test_more_than_fits_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(1000), ids=np.zeros(500))
    arrays = open_array_file(tmp_path / "a.npz").arrays
    monkeypatch.setattr(numpy_file, "_WHOLE", 7999)
    monkeypatch.setattr(stored_arrays, "_SMALL", 3999)
    with pytest.raises(DataError, match=r"'x' in a.npz is compressed and has 8,000 bytes, too many to unpack"):
        arrays["x"].open()
    with pytest.raises(DataError, match=r"'ids' in a.npz has 4,000 bytes, too many for a value per recording"):
        arrays["ids"].values()


def header(shape: str) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("shape", ["(101,)", "(9999999999999,)", "(-1, 50)", "(4611686018427387904, 4)", "(2**62,)"])
def test_a_header_that_claims_what_the_file_does_not_hold_is_refused(tmp_path: Path, shape: str, packing: int):
    raw = header(shape) + bytes(400)
    (tmp_path / "a.npy").write_bytes(raw)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", packing) as archive:
        archive.writestr("x.npy", raw)
        archive.writestr("other.txt", "not looked at")
    for name in ("a.npy", "a.npz"):
        with pytest.raises(DataError, match="cannot be read"):
            open_array_file(tmp_path / name)


def test_a_member_that_claims_more_than_deflate_can_pack_is_refused(tmp_path: Path):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(1000))
    raw = (tmp_path / "a.npz").read_bytes()
    place = raw.rindex(b"PK\x01\x02") + 24  # the size in the table at the end
    (tmp_path / "a.npz").write_bytes(raw[:place] + (1 << 31).to_bytes(4, "little") + raw[place + 4 :])
    with pytest.raises(DataError, match=r"claims 2,147,483,648 bytes, more than a file of .* bytes should hold"):
        open_array_file(tmp_path / "a.npz")


def test_another_packing_and_pickles_are_refused(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x.npy", header("(1,)") + bytes(4))
    with pytest.raises(DataError, match="packed in a way that numpy does not use"):
        open_array_file(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="holds Python objects"):
        open_array_file(tmp_path / "b.npz")


def test_a_small_member_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch):
    """Zeros shrink to a thousandth: 3.8 MB made 4 GB."""
    monkeypatch.setattr(regular_file, "_HARMLESS", 1 << 20)
    big = 3 << 20
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", header(f"({big // 4},)") + bytes(big))
    with pytest.raises(
        DataError, match=r"claims 3,14\d,\d+ bytes, more than a file of .*If you trust it, save it with"
    ):
        open_array_file(tmp_path / "a.npz")


def test_no_message_advises_to_open_pickles(tmp_path: Path):
    """numpy does so for a header that is too long, on the second line of its message."""
    long = header("(1,)" + " " * 20_000)
    (tmp_path / "a.npy").write_bytes(long + bytes(4))
    with pytest.raises(DataError, match="it is not a numpy array") as caught:
        open_array_file(tmp_path / "a.npy")
    assert "allow_pickle" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_a_damaged_compressed_member_is_a_sentence(tmp_path: Path, at: float):
    np.savez_compressed(tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=2000))
    raw = bytearray((tmp_path / "a.npz").read_bytes())
    place = int(len(raw) * at)
    raw[place : place + 40] = bytes(40)
    (tmp_path / "a.npz").write_bytes(raw)
    with pytest.raises(DataError, match="is damaged"):
        open_array_file(tmp_path / "a.npz").arrays["x"].open()
