"""Many files at a time: one lock, one stop, one disk; and processes that end in the middle."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path

import pytest
from fetched_files import BODY, SUM, fetch, left, quietly
from unreliable_server import Behaviour, serve

from clocs_core.data.download import download
from clocs_core.data.transfer import Wanted
from clocs_core.errors import DownloadError


def test_files_come_and_nothing_is_left_beside_them(tmp_path: Path):
    told = []
    with serve(x=Behaviour(BODY), y=Behaviour(BODY[::-1])) as site:
        wanted = [
            Wanted(site.url("x"), tmp_path / "d" / "x", len(BODY), SUM),
            Wanted(site.url("y"), tmp_path / "d" / "y"),
        ]
        new = download(wanted, lambda done, total: told.append((done, total)))
    assert new == (tmp_path / "d" / "x", tmp_path / "d" / "y")
    assert (tmp_path / "d" / "x").read_bytes() == BODY
    assert (tmp_path / "d" / "y").read_bytes() == BODY[::-1]
    assert left(tmp_path / "d") == ["x", "y"]
    assert told[0] == (0, None)  # the size of y is asked for first
    assert told[-1] == (2 * len(BODY), 2 * len(BODY))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_so_many_files_come_at_a_time_as_asked_for_and_no_more(tmp_path: Path):
    with serve(**{name: Behaviour(b"1", slow=60) for name in "abcdef"}) as site:
        wanted = [Wanted(site.url(name), tmp_path / name, 1) for name in "abcdef"]
        thread = threading.Thread(target=download, args=(wanted, quietly), kwargs={"connections": 3})
        thread.start()
        while site.at_once < 3:
            time.sleep(0.005)
        time.sleep(0.2)
        assert len(site.asked) == 3
        site.hold.set()
        thread.join()
    assert left(tmp_path) == list("abcdef")


def test_a_file_that_is_wanted_twice_comes_once(tmp_path: Path):
    with serve(x=Behaviour(BODY)) as site:
        download([Wanted(site.url("x"), tmp_path / "x", len(BODY))] * 2, quietly)
    assert len(site.asked) == 1
    assert (tmp_path / "x").read_bytes() == BODY


def test_leftovers_of_a_killed_download_are_swept_and_received_bytes_stay(tmp_path: Path):
    """Temporary files have the number of the process that writes them; this one's parent is alive."""
    old, live = time.time() - 2 * 86_400, f".z.part.json.{os.getppid()}.tmp"
    for name in ("y.part", "y.part.json", ".y.part.json.999999999.tmp", live):
        (tmp_path / name).write_bytes(b"1")
    for name in (".y.abc.unpacking", ".z.abc.unpacking"):
        (tmp_path / name).mkdir()
    for name in ("y.part", "y.part.json", ".y.abc.unpacking"):
        os.utime(tmp_path / name, (old, old))
    with serve(x=Behaviour(BODY)) as site:
        fetch(site.url("x"), tmp_path / "x")
    assert left(tmp_path) == [".z.abc.unpacking", live, "x", "y.part", "y.part.json"]


def test_one_file_that_cannot_be_had_stops_the_others_and_loses_nothing(tmp_path: Path):
    with serve(x=Behaviour(BODY, slow=0.05), y=Behaviour(b"", failures=[403])) as site:
        with pytest.raises(DownloadError, match=r"y answers 403 \(Forbidden\)"):
            download(
                [Wanted(site.url("x"), tmp_path / "x", len(BODY)), Wanted(site.url("y"), tmp_path / "y", 1)], quietly
            )
        assert site.served < len(BODY)
        site.pages["x"].slow = 0
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == BODY


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


CHILD = """
import resource, sys
from pathlib import Path
from clocs_core.data import transfer
from clocs_core.data.download import download
for limit in sys.argv[3:]:
    name, most = limit.split("=")
    resource.setrlimit(getattr(resource, name), (int(most), resource.getrlimit(getattr(resource, name))[1]))
transfer._NOTE_EVERY, transfer._CHUNK = 20_000, 4096
names = sys.argv[2].split(",")
download([transfer.Wanted(sys.argv[1] + Path(name).name, Path(name)) for name in names], lambda *_: None)
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        # Shells start jobs in the background deaf to Ctrl-C, and their children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def noted(target: Path) -> int:
    """Return how many bytes of a file the note of its download says are on the disk."""
    note = target.with_name(f"{target.name}.part.json")
    return int(json.loads(note.read_text())["came"]) if note.exists() else 0


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_a_disk_that_fills_up_stops_at_once_and_the_rest_can_be_had_later(tmp_path: Path):
    """Another try would only fill it again; and what came must not be lost."""
    with serve(x=Behaviour(BODY)) as site:
        _, said = start(site.url(""), str(tmp_path / "x"), "RLIMIT_FSIZE=150000").communicate(timeout=60)
        assert "OSError: [Errno 27] File too large" in said  # of the disk, not of a server that was tried again
        assert len(site.asked) == 2
        held = noted(tmp_path / "x")
        assert 120_000 < held <= 150_000
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == BODY
    assert site.asked[-1] == ("/x", f"bytes={held}-")


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_more_files_come_than_a_process_may_have_open(tmp_path: Path):
    names = [f"f{number}" for number in range(100)]
    with serve(**{name: Behaviour(name.encode()) for name in names}) as site:
        places = ",".join(str(tmp_path / name) for name in names)
        _, said = start(site.url(""), places, "RLIMIT_NOFILE=64").communicate(timeout=60)
        assert said == ""
    assert {name: (tmp_path / name).read_text() for name in names} == dict(zip(names, names, strict=True))


def test_two_processes_do_not_write_one_file(tmp_path: Path):
    from filelock import FileLock

    code = (
        "import sys, time, filelock; a = filelock.FileLock(sys.argv[1]); a.acquire(); print(flush=True); time.sleep(99)"
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


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_killed_in_the_middle_loses_little(tmp_path: Path, kind: signal.Signals):
    whole = 20 * BODY  # 15 s at this pace: it cannot end before the signal
    with serve(x=Behaviour(whole, slow=0.01)) as site:
        child = start(site.url(""), str(tmp_path / "x"))
        while noted(tmp_path / "x") < 60_000:
            time.sleep(0.005)
        child.send_signal(kind)
        child.communicate(timeout=60)
        assert child.returncode != 0
        assert "x" not in left(tmp_path)
        held = noted(tmp_path / "x")
        assert (tmp_path / "x.part").stat().st_size - held <= 24_096  # since the last note: as the child is told
        site.pages["x"].slow = 0
        fetch(site.url("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == whole
    assert held >= 60_000
    assert site.asked[-1] == ("/x", f"bytes={held}-")
