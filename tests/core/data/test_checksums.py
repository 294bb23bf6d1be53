"""Checksums of pieces: damage anywhere in a file is found, in both ways to check."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from clocs_core.data.checksums import Piece, Summing, find_damage, sum_file

RAW = np.random.default_rng(0).bytes(10_000)
CUTS = (0, 3000, 3000, 3001, 10_000)  # a piece may be empty


def pieces_of(raw: bytes) -> list[Piece]:
    parts = [raw[begin:end] for begin, end in pairwise(CUTS)]
    return [Piece(len(part), sha256(part).hexdigest(), crc32(part)) for part in parts]


def test_sums_are_those_of_all_bytes_however_they_come(tmp_path: Path) -> None:
    found = Summing()
    for begin, end in pairwise(CUTS):
        found.update(np.frombuffer(RAW[begin:end], np.uint8).data)
    assert found.piece() == Piece(len(RAW), sha256(RAW).hexdigest(), crc32(RAW))
    (tmp_path / "a").write_bytes(RAW)
    assert sum_file(tmp_path / "a") == found.piece()


@pytest.mark.parametrize("thorough", [False, True])
def test_a_flipped_bit_in_any_piece_is_found_and_its_place_named(tmp_path: Path, thorough: bool) -> None:
    file = tmp_path / "a"
    file.write_bytes(RAW)
    assert find_damage(file, pieces_of(RAW), thorough) is None
    for at, place in ((0, "0 to 3,000"), (2999, "0 to 3,000"), (3000, "3,000 to 3,001"), (9999, "3,001 to 10,000")):
        raw = bytearray(RAW)
        raw[at] ^= 128
        file.write_bytes(raw)
        assert f"from byte {place}, expected" in (find_damage(file, pieces_of(RAW), thorough) or "")
    file.write_bytes(RAW[:-1])
    assert "3,001 to 10,000" in (find_damage(file, pieces_of(RAW), thorough) or "")


def test_pieces_that_change_places_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(RAW[4:8] + RAW[:4] + RAW[8:])
    assert find_damage(tmp_path / "a", pieces_of(RAW)) is not None


def test_pieces_larger_than_what_is_read_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clocs_core.data.checksums._AT_ONCE", 7)
    (tmp_path / "a").write_bytes(RAW)
    assert find_damage(tmp_path / "a", pieces_of(RAW)) is None
    assert sum_file(tmp_path / "a").crc32 == crc32(RAW)
