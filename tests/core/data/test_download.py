"""Downloads over a server that drops, lies, refuses and changes its mind; all of it on this machine."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections import namedtuple
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unreliable_server import Behaviour, serve

from clocs_core.data import download as download_module
from clocs_core.data.download import Wanted, download
from clocs_core.data.partfile import gaps, merged
from clocs_core.data.web import _Redirects
from clocs_core.errors import DownloadError

BODY = random.Random(1).randbytes(300_000)
SUM = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def quietly(_done: int, _total: int | None) -> None:
    pass


def fetch(address: str, target: Path, size: int | None = None, checksum: str | None = None, **options) -> tuple:
    return download([Wanted(address, target, size, checksum)], quietly, **{"pause": 0.001, "piece": 20_000} | options)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".download.lock")


def test_a_file_comes_over_several_connections_and_nothing_is_left_beside_it(tmp_path: Path):
    told = []
    with serve(x=Behaviour(BODY, slow=0.002)) as site:
        new = download(
            [Wanted(site.url("x"), tmp_path / "d" / "x", len(BODY), SUM)],
            lambda done, total: told.append((done, total)),
            piece=20_000,
        )
    assert new == (tmp_path / "d" / "x",)
    assert (tmp_path / "d" / "x").read_bytes() == BODY
    assert left(tmp_path / "d") == ["x"]
    assert site.most_at_once >= 2
    assert told[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_connections_are_no_more_than_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Counted here: the server still closes one connection while the next is open."""
    now, most, some = [], [], download_module._Transfer._some

    def counted(self, at: int, end: int) -> int:
        now.append(at)
        most.append(len(now))
        try:
            return some(self, at, end)
        finally:
            now.pop()

    monkeypatch.setattr(download_module._Transfer, "_some", counted)
    with serve(x=Behaviour(BODY, slow=0.001), y=Behaviour(BODY[::-1], slow=0.001)) as site:
        wanted = [Wanted(site.url(name), tmp_path / name) for name in "xy"]
        download(wanted, quietly, connections=3, piece=20_000)
    assert 2 <= max(most) <= 3
    assert (tmp_path / "y").read_bytes() == BODY[::-1]


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
    """After some tries that bring no byte, instead of asking for ever."""
    with (
        serve(x=Behaviour(BODY, length=len(BODY) + 50_000, ranges=ranges)) as site,
        pytest.raises(DownloadError, match="could not be downloaded"),
    ):
        fetch(site.url("x"), tmp_path / "x")
    assert "x" not in left(tmp_path)


def test_a_server_that_promises_less_than_it_has_is_caught_by_size_or_checksum(tmp_path: Path):
    with serve(x=Behaviour(BODY, length=len(BODY) - 5)) as site:
        with pytest.raises(DownloadError, match="has 299,995 bytes, expected 300,000: the publisher has changed it"):
            fetch(site.url("x"), tmp_path / "x", size=len(BODY))
        with pytest.raises(DownloadError, match="SHA-256"):
            fetch(site.url("x"), tmp_path / "x", checksum=SUM)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_wrong_checksum_gives_no_file_keeps_what_came_aside_and_can_be_tried_again(tmp_path: Path, ranges: bool):
    with serve(x=Behaviour(BODY[:-1] + b"?", ranges=ranges)) as site:
        with pytest.raises(DownloadError, match=f"expected SHA-256 {SUM}. What came is kept as .*x.broken"):
            fetch(site.url("x"), tmp_path / "x", checksum=SUM)
        assert left(tmp_path) == ["x.broken"]
        site.pages["x"] = Behaviour(BODY, tag='"two"', ranges=ranges)
        fetch(site.url("x"), tmp_path / "x", checksum=SUM.upper())
    assert (tmp_path / "x").read_bytes() == BODY


def test_what_stopped_in_the_middle_goes_on_there(tmp_path: Path):
    with serve(x=Behaviour(BODY, failures=[206])) as site:
        site.pages["x"] = Behaviour(BODY, length=len(BODY) * 2)  # half of it cannot be had: gives up
        with pytest.raises(DownloadError, match="the same command goes on"):
            fetch(site.url("x"), tmp_path / "x", connections=1)
        before = site.served
        # the server is repaired: the same version, by its tag, and the length that it always said
        site.pages["x"] = Behaviour(BODY * 2)
        fetch(site.url("x"), tmp_path / "x", connections=1)
    assert (tmp_path / "x").read_bytes() == BODY * 2
    assert site.served - before < len(BODY) + 30_000


def test_another_version_is_not_put_together_with_the_old_one(tmp_path: Path):
    with serve(x=Behaviour(BODY, length=len(BODY) + 9)) as site:
        with pytest.raises(DownloadError):
            fetch(site.url("x"), tmp_path / "x")
        other = bytes(reversed(BODY)) + b"123456789"
        site.pages["x"] = Behaviour(other, tag='"two"')
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == other


def test_a_file_without_a_tag_goes_on_only_where_a_checksum_will_tell(tmp_path: Path):
    held = {"total": len(BODY), "tag": "", "done": [[0, 100_000]]}
    for checksum, least in ((None, len(BODY)), (SUM, 200_000)):
        folder = tmp_path / str(least)
        folder.mkdir()
        (folder / "x.part").write_bytes(BODY[:100_000])
        (folder / "x.part.json").write_text(json.dumps(held))
        with serve(x=Behaviour(BODY, tag=None)) as site:
            fetch(site.url("x"), folder / "x", checksum=checksum)
        assert (folder / "x").read_bytes() == BODY
        assert least <= site.served < least + 10


def test_a_file_that_changes_on_the_way_is_told(tmp_path: Path):
    with serve(x=Behaviour(BODY)) as site:
        pages = site.pages

        class Changing(dict):
            def get(self, name):
                return pages["x"] if len(site.asked) <= 3 else Behaviour(BODY, tag='"two"')

        site.pages = Changing()
        with pytest.raises(DownloadError, match="was changed while it was downloaded"):
            fetch(site.url("x"), tmp_path / "x", connections=1)
    assert "x" not in left(tmp_path)


def test_bytes_from_another_place_are_refused(tmp_path: Path):
    with (
        serve(x=Behaviour(BODY, shift=7)) as site,
        pytest.raises(DownloadError, match="another part of the file than it was asked for"),
    ):
        fetch(site.url("x"), tmp_path / "x")


@pytest.mark.parametrize("held", ["", "{", "[]", '{"total": 300000, "tag": "\\"one\\"", "done": [[0, 9e9], ["a", 1]]}'])
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


def test_a_file_that_is_not_there_is_said_at_once(tmp_path: Path):
    with serve() as site:
        with pytest.raises(DownloadError, match="answers 404"):
            fetch(site.url("x"), tmp_path / "x")
        assert len(site.asked) == 1


def test_nobody_listening_is_said_after_some_tries(tmp_path: Path):
    with serve() as site:
        pass
    with pytest.raises(DownloadError, match=r"refused.*after 6 tries"):
        fetch(site.url("x"), tmp_path / "x")


def test_redirects_are_followed_but_only_to_the_web(tmp_path: Path):
    with serve(x=Behaviour(BODY), y=Behaviour(b""), z=Behaviour(b"", redirect="file:///etc/passwd")) as site:
        site.pages["y"].redirect = site.url("x")
        fetch(site.url("y"), tmp_path / "y")
        with pytest.raises(DownloadError, match="'file:///etc/passwd' is not allowed"):
            fetch(site.url("z"), tmp_path / "z")
        site.pages["y"].redirect = site.url("y")
        with pytest.raises(DownloadError):
            fetch(site.url("y"), tmp_path / "around")
    assert (tmp_path / "y").read_bytes() == BODY
    with pytest.raises(DownloadError, match="only http"):
        fetch("file:///etc/passwd", tmp_path / "w")


def test_an_encrypted_address_does_not_lead_to_one_that_is_not():
    """A file without a known checksum is only as safe as the line it came over."""
    request = urllib.request.Request("https://data.example/x")
    with pytest.raises(DownloadError, match="not safe to follow"):
        _Redirects().redirect_request(request, io.BytesIO(), 302, "Found", {}, "http://data.example/x")


@pytest.mark.parametrize("ranges", [True, False])
def test_an_empty_file_is_a_file(tmp_path: Path, ranges: bool):
    with serve(x=Behaviour(b"", ranges=ranges)) as site:
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b""


def test_what_is_there_is_not_asked_for_and_a_wrong_size_is_told(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"abc")
    assert fetch("http://127.0.0.1:9/x", tmp_path / "x") == ()
    with pytest.raises(DownloadError, match=r"with 3 bytes, expected 4\. Delete it"):
        fetch("http://127.0.0.1:9/x", tmp_path / "x", size=4)


def test_a_disk_without_room_is_told_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**6, 10**6, 1000))
    with serve(x=Behaviour(BODY)) as site:
        with pytest.raises(DownloadError, match="Make room"):
            fetch(site.url("x"), tmp_path / "x")
        assert site.served < 10


def test_a_disk_that_fills_up_stops_at_once_and_the_rest_can_be_had_later(tmp_path: Path, monkeypatch):
    """Another try would only fill it again; and what came must not be lost."""
    whole = download_module.PartFile.write

    def full(self, at: int, data: bytes) -> None:
        if self.size > 100_000:
            raise OSError(28, "No space left on device")
        whole(self, at, data)

    with serve(x=Behaviour(BODY)) as site:
        with monkeypatch.context() as patch:
            patch.setattr(download_module.PartFile, "write", full)
            with pytest.raises(OSError, match="No space left") as caught:
                fetch(site.url("x"), tmp_path / "x")
            assert caught.value.errno == 28  # of the disk, not of a server that was tried again and again
        before = site.served
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == BODY
    assert site.served - before < 220_000


def test_two_processes_do_not_write_one_file(tmp_path: Path):
    from filelock import FileLock

    code = (
        "import sys, time, filelock; a = filelock.FileLock(sys.argv[1]); a.acquire(); print(flush=True); time.sleep(9)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / ".download.lock")], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(DownloadError, match="Another process is downloading"):
            fetch("http://127.0.0.1:9/x", tmp_path / "x")
    finally:
        other.kill()
        other.communicate()
    with FileLock(tmp_path / ".download.lock", timeout=1):
        pass


CHILD = """
import sys
from pathlib import Path
from clocs_core.data import partfile
from clocs_core.data.download import Wanted, download
partfile._SAVE_EVERY = 20_000
download([Wanted(sys.argv[1], Path(sys.argv[2]))], lambda *_: None, connections=2, piece=20_000)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_killed_in_the_middle_loses_little(tmp_path: Path, kind: signal.Signals):
    with serve(x=Behaviour(BODY, slow=0.01)) as site:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, site.url("x"), str(tmp_path / "x")],
            stderr=subprocess.PIPE,
            # Shells start jobs in the background deaf to Ctrl-C, and their children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        while site.served < 120_000:
            time.sleep(0.005)
        child.send_signal(kind)
        child.communicate(timeout=20)
        assert child.returncode != 0
        assert "x" not in left(tmp_path)
        before = site.served
        site.pages["x"].slow = 0
        fetch(site.url("x"), tmp_path / "x")
        again = site.served - before
    assert (tmp_path / "x").read_bytes() == BODY
    assert again < 260_000


# --------------------------------------------------------------------------------------------------------------- ranges

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: tuple(sorted(pair))), max_size=8)


@given(RANGES, st.integers(1, 15))
def test_ranges_and_their_gaps_are_a_file_as_sets_of_bytes_say(ranges, piece):
    done: list = []
    for one in ranges:
        done = merged(done, one)
    there = {byte for first, end in ranges for byte in range(first, end)}
    assert {byte for first, end in done for byte in range(first, end)} == there
    assert all(end < first for (_, end), (first, _) in pairwise(done))
    missing = gaps(done, 40, piece)
    assert sorted(byte for first, end in missing for byte in range(first, end)) == sorted(set(range(40)) - there)
    assert all(0 < end - first <= piece for first, end in missing)
