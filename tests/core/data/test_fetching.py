"""Files of a data set are checked against the publisher's list of checksums."""

from __future__ import annotations

from pathlib import Path

import pytest
from unreliable_server import Behaviour, Site, serve, sums_of

from clocs_core.contracts.offers import Source
from clocs_core.data.fetching import fetch
from clocs_core.data.server_folders import read_sums
from clocs_core.errors import ClocsWarning, DownloadError

FILES = {"set/a b.zip": b"archive", "set/g1/RECORDS": b"A1\n", "set/g1/A1.hea": b"header", "set/g1/A1.mat": b"signal"}


def pages(sent: dict[str, bytes], listed: dict[str, bytes]) -> dict[str, Behaviour]:
    made = {name.replace(" ", "%20"): Behaviour(raw) for name, raw in sent.items()}
    return made | {
        "set/SHA256SUMS.txt": Behaviour(sums_of({name.removeprefix("set/"): raw for name, raw in listed.items()}))
    }


def get(site: Site, folder: Path) -> list[str]:
    sums = site.url("set/SHA256SUMS.txt")
    sources = [
        Source("a.zip", site.url("set/a%20b.zip"), sums=sums),
        Source("g1/", site.url("set/g1/"), endings=(".hea", ".mat"), sums=sums),
    ]
    return [path.name for path in fetch(sources, folder, lambda done, total: None, 2).new]


def test_files_that_a_list_names_are_compared_with_it(tmp_path: Path) -> None:
    with serve(**pages(FILES, FILES)) as site:
        assert get(site, tmp_path / "d") == ["a.zip", "A1.hea", "A1.mat"]
        assert sum(path == "/set/SHA256SUMS.txt" for path, _ in site.asked) == 2  # its size, and the list, once


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_differs_from_the_list_is_not_used(tmp_path: Path, name: str) -> None:
    """The server's size and the file's size agree: only the checksum shows it."""
    with (
        serve(**pages({**FILES, name: FILES[name][::-1]}, FILES)) as site,
        pytest.raises(DownloadError, match=r"has SHA-256 \w+, expected SHA-256"),
    ):
        get(site, tmp_path / "d")


def test_without_the_list_files_come_with_a_warning(tmp_path: Path) -> None:
    made = pages(FILES, FILES)
    del made["set/SHA256SUMS.txt"]
    with serve(**made) as site, pytest.warns(ClocsWarning, match="not checked against their checksums: .* answers 404"):
        assert get(site, tmp_path / "d") == ["a.zip", "A1.hea", "A1.mat"]


def test_a_list_of_checksums_is_read_by_address() -> None:
    digest = "AB" * 32
    text = f"{digest}  g1/A1.hea\n{digest} *x.zip\nno checksum\n\n{'z' * 64} y\n"
    assert read_sums("https://example.org/set/SHA256SUMS.txt", text) == {
        "https://example.org/set/g1/A1.hea": digest.lower(),
        "https://example.org/set/x.zip": digest.lower(),
    }
