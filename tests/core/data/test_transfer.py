"""One file from a server that drops, lies, refuses and changes its mind; all of it on this machine."""

from __future__ import annotations

import io
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
import requests
from fetched_files import BODY, SUM, fetch, left
from unreliable_server import Behaviour, serve

from clocs_core.data import transfer
from clocs_core.data.download import download
from clocs_core.data.transfer import Wanted
from clocs_core.errors import DownloadError


def test_connections_that_are_dropped_at_random_cost_nothing_but_time(tmp_path: Path):
    with serve(x=Behaviour(BODY, drop=0.5)) as site:
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == BODY
    assert site.served < 1.2 * len(BODY)  # what came is never asked for again


def test_a_server_that_always_drops_still_serves_in_the_end(tmp_path: Path):
    with serve(x=Behaviour(BODY, drop_after=3000)) as site:
        fetch(site.url("x"), tmp_path / "x", checksum=SUM)
    assert (tmp_path / "x").read_bytes() == BODY


def test_a_server_without_ranges_is_read_in_one_go_and_again_from_the_start_when_it_drops(tmp_path: Path):
    with serve(x=Behaviour(BODY, ranges=False, drop=0.6)) as site:
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == BODY
    assert left(tmp_path) == ["x"]


def test_a_server_that_says_no_length_is_read_to_its_end(tmp_path: Path):
    with serve(x=Behaviour(BODY, ranges=False, says_length=False)) as site:
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == BODY


def test_a_cut_is_noticed_by_the_known_size_where_the_server_says_no_length(tmp_path: Path):
    with (
        serve(x=Behaviour(BODY, ranges=False, says_length=False, drop_after=1000)) as site,
        pytest.raises(DownloadError, match="ended after 1,000 of 300,000 bytes"),
    ):
        fetch(site.url("x"), tmp_path / "x", size=len(BODY))


@pytest.mark.parametrize("ranges", [True, False])
def test_a_server_that_promises_more_than_it_has_is_given_up(tmp_path: Path, ranges: bool):
    """After some tries that bring nothing new, instead of asking for ever."""
    with (
        serve(x=Behaviour(BODY, length=len(BODY) + 50_000, ranges=ranges)) as site,
        pytest.raises(
            DownloadError, match=r"could not be downloaded: .* ended after 300,000 of 350,000 bytes, after 6"
        ),
    ):
        fetch(site.url("x"), tmp_path / "x")
    assert "x" not in left(tmp_path)


def test_a_server_that_sends_more_than_expected_is_stopped_there(tmp_path: Path):
    """Without ranges and without a length, nothing but the expected size says where the file ends."""
    with (
        serve(x=Behaviour(BODY * 200, ranges=False, says_length=False)) as site,
        pytest.raises(
            DownloadError, match=r"x has more than 300,000 bytes, expected 300,000 bytes\. The received file is kept"
        ),
    ):
        fetch(site.url("x"), tmp_path / "x", size=len(BODY))
    assert left(tmp_path) == ["x.broken"]
    assert (tmp_path / "x.broken").stat().st_size == len(BODY) + 1
    assert site.served < 100 * len(BODY)  # what the system had read ahead


def test_an_answer_without_a_length_ends_where_the_server_said_before(tmp_path: Path):
    """Asked for the first byte it says 1,000 bytes; asked for the file it says nothing and sends without end."""
    endless = Behaviour(BODY[:1000], says_length=False, more=BODY * 200)
    with serve(x=endless) as site, pytest.raises(DownloadError, match="x has more than 1,000 bytes, expected 1,000"):
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x.broken").stat().st_size == 1001
    assert site.served < 100 * len(BODY)  # what the system had read ahead


def test_a_server_that_promises_less_than_it_has_is_caught_by_size_or_checksum(tmp_path: Path):
    with serve(x=Behaviour(BODY, length=len(BODY) - 5)) as site:
        with pytest.raises(DownloadError, match="has 299,995 bytes, expected 300,000: the publisher has changed it"):
            fetch(site.url("x"), tmp_path / "x", size=len(BODY))
        with pytest.raises(DownloadError, match="SHA-256"):
            fetch(site.url("x"), tmp_path / "x", checksum=SUM)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_wrong_checksum_gives_no_file_keeps_what_came_aside_and_can_be_tried_again(tmp_path: Path, ranges: bool):
    with serve(x=Behaviour(BODY[:-1] + b"?", ranges=ranges)) as site:
        with pytest.raises(DownloadError, match=f"expected SHA-256 {SUM}. The received file is kept as .*x.broken"):
            fetch(site.url("x"), tmp_path / "x", checksum=SUM)
        assert left(tmp_path) == ["x.broken"]
        site.pages["x"] = Behaviour(BODY, tag='"two"', ranges=ranges)
        fetch(site.url("x"), tmp_path / "x", checksum=SUM.upper())
    assert (tmp_path / "x").read_bytes() == BODY


def test_what_stopped_in_the_middle_goes_on_there(tmp_path: Path):
    with serve(x=Behaviour(BODY, length=len(BODY) * 2)) as site:  # half of it cannot be had: gives up
        with pytest.raises(DownloadError, match="the same command resumes"):
            fetch(site.url("x"), tmp_path / "x")
        before = site.served
        # the server is repaired: the same version, by its tag, and the length that it always said
        site.pages["x"] = Behaviour(BODY * 2)
        told = []
        download([Wanted(site.url("x"), tmp_path / "x")], lambda done, total: told.append((done, total)))
    assert (tmp_path / "x").read_bytes() == BODY * 2
    assert site.served - before == len(BODY)
    assert told[0] == (len(BODY), 2 * len(BODY))
    assert left(tmp_path) == ["x"]


def leave_half(folder: Path, came: int, tag: str = '"one"') -> None:
    folder.mkdir(exist_ok=True)
    (folder / "x.part").write_bytes(BODY[:came])
    (folder / "x.part.json").write_text(json.dumps({"came": came, "tag": tag, "total": len(BODY)}))


def test_what_stopped_after_the_last_byte_is_not_fetched_again(tmp_path: Path):
    leave_half(tmp_path, len(BODY))
    with serve(x=Behaviour(BODY)) as site:
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == BODY
    assert site.served == 0


def test_another_version_is_not_put_together_with_the_old_one(tmp_path: Path):
    with serve(x=Behaviour(BODY, length=len(BODY) + 9)) as site:
        with pytest.raises(DownloadError):
            fetch(site.url("x"), tmp_path / "x")
        other = bytes(reversed(BODY)) + b"123456789"
        site.pages["x"] = Behaviour(other, tag='"two"')
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == other


def test_a_file_without_a_tag_goes_on_only_where_a_checksum_will_tell(tmp_path: Path):
    for checksum, least in ((None, len(BODY)), (SUM, 200_000)):
        leave_half(tmp_path / str(least), 100_000, tag="")
        with serve(x=Behaviour(BODY, tag=None)) as site:
            fetch(site.url("x"), tmp_path / str(least) / "x", checksum=checksum)
        assert (tmp_path / str(least) / "x").read_bytes() == BODY
        assert least <= site.served < least + 10


@pytest.mark.parametrize("minds", [True, False])
def test_a_file_that_changes_on_the_way_comes_whole_in_its_new_version(tmp_path: Path, minds: bool):
    """Also from a server that does not look at If-Range and sends the rest of the new version."""
    with serve(x=Behaviour(BODY, drop_after=100_000)) as site:
        pages, new = site.pages, Behaviour(BODY[::-1], tag='"two"', minds_versions=minds)

        class Changing(dict):
            def get(self, name):
                return pages["x"] if len(site.asked) <= 2 else new

        site.pages = Changing()
        fetch(site.url("x"), tmp_path / "x", size=len(BODY))
    assert (tmp_path / "x").read_bytes() == BODY[::-1]
    assert site.asked[1:3] == [("/x", "bytes=100000-"), ("/x", "bytes=200000-")]


def test_bytes_from_another_place_are_refused(tmp_path: Path):
    with (
        serve(x=Behaviour(BODY, shift=7, drop_after=1000)) as site,
        pytest.raises(DownloadError, match="another part of the file than it was asked for"),
    ):
        fetch(site.url("x"), tmp_path / "x")
    assert "x" not in left(tmp_path)


@pytest.mark.parametrize(
    "held",
    [
        "",
        "{",
        "[]",
        '{"came": 9000000000, "tag": "one", "total": 300000}',
        '{"came": -5, "tag": "one", "total": 300000}',
        '{"came": 5, "tag": "one", "total": "much"}',
        '{"came": [[0, 5]], "tag": "\\"one\\"", "total": 300000}',
    ],
)
def test_a_spoilt_note_of_what_is_there_means_from_the_start(tmp_path: Path, held: str):
    (tmp_path / "x.part").write_bytes(b"rubbish")
    (tmp_path / "x.part.json").write_text(held)
    with serve(x=Behaviour(BODY)) as site:
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == BODY


def test_a_server_that_is_busy_is_asked_again(tmp_path: Path):
    with serve(x=Behaviour(BODY, failures=[503, 429, 500])) as site:
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == BODY


@pytest.mark.parametrize(
    "asked", ["1", format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)], ids=["seconds", "date"]
)
def test_a_server_that_asks_for_a_pause_gets_it_within_reason(tmp_path: Path, monkeypatch, asked: str):
    monkeypatch.setattr(transfer, "_LONGEST_RETRY_AFTER", 1.0)
    with serve(x=Behaviour(BODY, failures=[503], retry_after=asked)) as site:
        began = time.monotonic()
        fetch(site.url("x"), tmp_path / "x", size=len(BODY))
        assert 1 <= time.monotonic() - began < 10
    assert (tmp_path / "x").read_bytes() == BODY


@pytest.mark.parametrize("asked", ["soon", "-1", "Wed, 45 Jan 2030 07:28:00 GMT"])
def test_a_server_that_asks_for_a_pause_in_words_that_mean_nothing_is_asked_again(
    tmp_path: Path, monkeypatch, asked: str
):
    monkeypatch.setattr(transfer, "_LONGEST_RETRY_AFTER", 0.5)  # the library takes day 45 of a month for a date
    with serve(x=Behaviour(BODY, failures=[503], retry_after=asked)) as site:
        fetch(site.url("x"), tmp_path / "x", size=len(BODY))
    assert (tmp_path / "x").read_bytes() == BODY


def test_a_file_that_is_not_there_is_said_at_once(tmp_path: Path):
    with serve() as site:
        with pytest.raises(DownloadError, match="answers 404"):
            fetch(site.url("x"), tmp_path / "x")
        assert len(site.asked) == 1
    assert left(tmp_path) == []


def test_nobody_listening_is_said_after_some_tries(tmp_path: Path):
    with serve() as site:
        pass
    with pytest.raises(DownloadError, match=r"refused.*after 6 tries"):
        fetch(site.url("x"), tmp_path / "x")


def test_redirects_are_followed_but_only_to_the_web(tmp_path: Path):
    with serve(x=Behaviour(BODY), y=Behaviour(b""), z=Behaviour(b"", redirect="file:///etc/passwd")) as site:
        site.pages["y"].redirect = site.url("x")
        fetch(site.url("y"), tmp_path / "y")
        with pytest.raises(DownloadError, match="sends us on to file:///etc/passwd, which is not safe"):
            fetch(site.url("z"), tmp_path / "z")
        site.pages["y"].redirect = site.url("y")
        with pytest.raises(DownloadError, match="Exceeded 30 redirects"):
            fetch(site.url("y"), tmp_path / "around")
    assert (tmp_path / "y").read_bytes() == BODY
    with pytest.raises(DownloadError, match="only http"):
        fetch("file:///etc/passwd", tmp_path / "w")


def test_an_encrypted_address_does_not_lead_to_one_that_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file without a known checksum is only as safe as the line it came over."""
    send = requests.adapters.HTTPAdapter.send

    def redirect(self, request: requests.PreparedRequest, **options) -> requests.Response:
        if request.url.startswith("http:"):
            return send(self, request, **options)
        response = requests.Response()
        response.status_code, response.url, response.request, response.raw = 302, request.url, request, io.BytesIO()
        response.headers["Location"] = site.url("x")
        return response

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", redirect)
    with serve(x=Behaviour(BODY)) as site:
        with pytest.raises(DownloadError, match=r"https://data.example/x sends us on to http://.* not safe to follow"):
            fetch("https://data.example/x", tmp_path / "x")
        assert site.asked == []


@pytest.mark.parametrize("address", ["http://", "http://[/x", "https:///x"])
def test_an_address_that_is_none_is_said_at_once(tmp_path: Path, address: str):
    with pytest.raises(DownloadError, match="Cannot download http"):
        fetch(address, tmp_path / "x", pause=60)


@pytest.mark.parametrize("ranges", [True, False])
def test_an_empty_file_is_a_file(tmp_path: Path, ranges: bool):
    with serve(x=Behaviour(b"", ranges=ranges)) as site:
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b""
