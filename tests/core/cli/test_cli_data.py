"""`clocs data list` and `clocs data download`, on data sets made up here and a server on this machine."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fake_offers import offers, tiny
from fake_plugins import fake_point
from unreliable_server import Behaviour, Site, serve

from clocs_core import Source
from clocs_core.cli import main


def packed(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"records/{name}.txt", data)
    return buffer.getvalue()


ARCHIVE, TABLE = packed(one=b"1" * 5000, two=b"2"), b"record,label\n"


def remote(*sources: Source, **changes: Any) -> list[Any]:
    """A plugin with a data set that is downloaded, beside one that makes its own recordings."""
    there = tiny("far", embedded=False, sources=sources, licence="CC BY 4.0", summary="far away", **changes)
    return [fake_point("fakes", **offers() | {"clocs_datasets": lambda: [tiny(), there]})]


def sources(site: Site) -> tuple[Source, ...]:
    checksum = hashlib.sha256(ARCHIVE).hexdigest()
    return (
        Source("far.zip", site.url("zip"), len(ARCHIVE), checksum),
        Source("tables/far.csv", site.url("csv"), len(TABLE)),
    )


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path


def test_the_list_says_licence_size_origin_and_whether_it_is_here(place: Path, capsys: pytest.CaptureFixture[str]):
    plugins = remote(Source("a.zip", "https://data.example/a.zip", 2_300_000_000), Source("b", "https://x.example", 5))
    assert main(["data", "list"], plugins) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "tiny  ten patients",
        "  licence: not stated",
        "  from: made on the spot",
        "  here: always",
        "far  far away",
        "  licence: CC BY 4.0",
        "  from: 2.3 GB, https://data.example/a.zip and 1 more",
        "  here: no; get it with `clocs data download far`",
    ]
    (place / "far").mkdir()
    assert "here: no" in run_list(plugins, capsys)[-1]  # an empty folder holds no data set
    (place / "far" / "x").touch()
    assert run_list(plugins, capsys)[-1] == f"  here: {place / 'far'}"
    (place / "prepared" / "far" / "0123").mkdir(parents=True)
    (place / "prepared" / "far" / "0123" / "manifest.json").touch()
    assert run_list(plugins, capsys)[-1] == f"  here: {place / 'far'}, prepared in 1 form"


def run_list(plugins: list[Any], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["data", "list"], plugins) == 0
    return capsys.readouterr().out.splitlines()


def test_the_list_as_json_has_every_address(place: Path, capsys: pytest.CaptureFixture[str]):
    plugins = remote(Source("a.zip", "https://data.example/a.zip", 7), Source("b", "https://x.example"))
    assert main(["data", "list", "--json"], plugins) == 0
    far = json.loads(capsys.readouterr().out)[1]
    assert (far["name"], far["licence"], far["size"], far["present"], far["prepared"]) == (
        "far",
        "CC BY 4.0",
        None,  # the size of b is not known
        False,
        0,
    )
    assert [source["address"] for source in far["sources"]] == ["https://data.example/a.zip", "https://x.example"]
    assert far["folder"] == str(place / "far")


def test_a_download_says_the_licence_first_unpacks_and_says_what_to_do_next(place: Path, capsys):
    with serve(zip=Behaviour(ARCHIVE, drop=0.3), csv=Behaviour(TABLE)) as site:
        plugins = remote(*sources(site))
        assert main(["data", "download", "far"], plugins) == 0
        out, err = capsys.readouterr()
        assert out.splitlines() == [
            "far: far away",
            "Licence: CC BY 4.0",
            f"2 of 2 files downloaded to {place / 'far'}.",
            "far.zip unpacked, 2 files.",
            "Next: clocs run --plugin METHOD --dataset far   (`clocs plugins` lists the methods)",
        ]
        assert err == "Unpacking far.zip …\n"  # no bar without a terminal
        assert (place / "far" / "records" / "one.txt").read_bytes() == b"1" * 5000
        assert (place / "far" / "tables" / "far.csv").read_bytes() == TABLE
        asked = len(site.asked)
        (place / "far" / "records" / "two.txt").unlink()  # what the user deletes is not unpacked again
        assert main(["data", "download", "far"], plugins) == 0
        assert len(site.asked) == asked
        out = capsys.readouterr().out
        assert f"0 of 2 files downloaded to {place / 'far'}; the others were there." in out
        assert "far.zip was unpacked before." in out
        assert not (place / "far" / "records" / "two.txt").exists()


def test_another_data_root_is_named_in_what_to_do_next(place: Path, capsys: pytest.CaptureFixture[str]):
    with serve(zip=Behaviour(ARCHIVE), csv=Behaviour(TABLE)) as site:
        assert main(["data", "download", "far", "--data-root", str(place / "b")], remote(*sources(site))) == 0
    assert f"--dataset far --data-root {place / 'b'}" in capsys.readouterr().out
    assert (place / "b" / "far" / "records").is_dir()


def test_a_corrupt_archive_is_one_line_and_unpacks_nothing(place: Path, capsys: pytest.CaptureFixture[str]):
    with serve(zip=Behaviour(ARCHIVE[:400])) as site:
        assert main(["data", "download", "far"], remote(Source("far.zip", site.url("zip")))) == 2
    err = capsys.readouterr().err
    assert "far.zip is damaged" in err
    assert "Traceback" not in err
    assert not (place / "far" / "records").exists()


def test_a_wrong_checksum_is_one_line(place: Path, capsys: pytest.CaptureFixture[str]):
    with serve(zip=Behaviour(ARCHIVE)) as site:
        assert main(["data", "download", "far"], remote(Source("far.zip", site.url("zip"), None, "0" * 64))) == 2
    assert "Error: far.zip has SHA-256" in capsys.readouterr().err
    assert not (place / "far" / "far.zip").exists()


@pytest.mark.parametrize("file", ["../far.zip", "/far.zip", "a/../../b", ""])
def test_a_source_cannot_be_put_outside_of_the_data_set(place: Path, capsys: pytest.CaptureFixture[str], file: str):
    assert main(["data", "download", "far"], remote(Source(file, "http://127.0.0.1:9/"))) == 2
    assert "is not the name of a file" in capsys.readouterr().err


def test_data_sets_without_sources_say_why(capsys: pytest.CaptureFixture[str]):
    assert main(["data", "download", "tiny"], remote()) == 0
    assert main(["data", "download", "far"], remote()) == 0
    made, own = capsys.readouterr().out.splitlines()
    assert made == "tiny has nothing to download: it makes its own recordings."
    assert own == "far has nothing to download: point at your own files with `clocs run --root`."


def test_an_unknown_name_has_neighbours(capsys: pytest.CaptureFixture[str]):
    assert main(["data", "download", "tinny"], remote()) == 2
    assert "No dataset 'tinny'. Did you mean 'tiny'?" in capsys.readouterr().err


def test_a_folder_of_recordings_is_downloaded_by_its_lists(place: Path, capsys: pytest.CaptureFixture[str]):
    """PhysioNet keeps many sets as folders of small files, each folder with a RECORDS file."""
    pages = {
        "set/RECORDS": b"g1/\nX9\n",
        "set/X9.hea": b"x9",
        "set/X9.mat": b"X9",
        "set/g1/RECORDS": b"A0001\nA0002\n",
        **{f"set/g1/A000{n}{end}": f"{n}{end}".encode() for n in (1, 2) for end in (".hea", ".mat")},
    }
    with serve(**{name: Behaviour(body, drop=0.1) for name, body in pages.items()}) as site:
        plugins = remote(Source("set/", site.url("set/"), endings=(".hea", ".mat")))
        assert main(["data", "download", "far"], plugins) == 0
    assert f"6 of 6 files downloaded to {place / 'far'}." in capsys.readouterr().out
    for name, body in pages.items():
        assert (place / "far" / name).read_bytes() == body
