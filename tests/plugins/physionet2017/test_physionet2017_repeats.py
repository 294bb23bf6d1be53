"""Files that are byte for byte the same in two places: found whatever they hold, and without reading all of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_plugins.physionet2017 import repeats
from clocs_plugins.physionet2017.repeats import find_repeats

LONG = bytes(3000)  # more than what is compared first
CONTENTS = st.sampled_from([b"", b"a", b"b", LONG + b"a", LONG + b"b", LONG + b"ab"])


def write_all(folder: Path, places: list[list[bytes]]) -> list[list[Path]]:
    written = []
    for number, contents in enumerate(places):
        (folder / str(number)).mkdir(exist_ok=True)
        written.append([folder / str(number) / f"{name}.mat" for name in range(len(contents))])
        for path, content in zip(written[-1], contents, strict=True):
            path.write_bytes(content)
    return written


@settings(max_examples=40)
@given(st.lists(st.lists(CONTENTS, max_size=5), max_size=4))
def test_a_file_repeats_exactly_if_an_earlier_place_has_its_bytes(contents):
    with tempfile.TemporaryDirectory() as folder:
        places = write_all(Path(folder), contents)
        found = find_repeats(places)
        for rank, paths in enumerate(places):
            for path in paths:
                earlier = [other for before in places[:rank] for other in before]
                same = [other for other in earlier if other.read_bytes() == path.read_bytes()]
                assert (path in found) == bool(same)
                assert path not in found or found[path] in same
        assert not set(found.values()) & found.keys(), "what is kept is no repetition itself"


def test_files_are_read_only_as_far_as_they_agree(tmp_path, monkeypatch):
    """Every command begins with a scan, and the whole set is 150 MB."""
    begun, read = [], []
    head, digest = repeats._head, repeats._digest
    monkeypatch.setattr(repeats, "_head", lambda path: begun.append(path) or head(path))
    monkeypatch.setattr(repeats, "_digest", lambda path: read.append(path) or digest(path))
    first = [b"short", LONG + b"a", b"x" + LONG, b"lone in size"]
    second = [b"other size", LONG + b"a", b"y" + LONG]
    (one, two) = write_all(tmp_path, [first, second])
    assert find_repeats([one, two]) == {two[1]: one[1]}
    assert set(begun) == {*one[1:3], *two[1:3]}, "of those whose size both have"
    assert set(read) == {one[1], two[1]}, "of those that begin alike too"


def test_one_place_is_not_touched(tmp_path, monkeypatch):
    """The whole set in one folder is 8,528 files: not even their sizes are asked for."""
    monkeypatch.setattr(repeats, "_size", None)
    assert find_repeats([[tmp_path / "nowhere.mat"]]) == {}
    assert find_repeats([]) == {}


@pytest.mark.parametrize("gone", [0, 1])
def test_a_file_that_cannot_be_read_is_the_same_as_no_other(tmp_path, gone):
    """A dangling link is told of when its recording is read, as in a single place."""
    places = write_all(tmp_path, [[b"a"], [b"a"], [b"a"]])
    places[gone][0].unlink()
    (kept,) = [place[0] for rank, place in enumerate(places[:2]) if rank != gone]
    assert find_repeats(places) == {places[2][0]: kept}
