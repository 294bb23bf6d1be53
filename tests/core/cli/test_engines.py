"""The flags that choose an executor: where it does the work of a command, and what is refused at once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import chdir, contextmanager
from pathlib import Path

import attrs
import pytest
from fake_plugins import FakePoint, fake_point

from clocs_core import ExecutorOffer, Job, Outcome, Workplace, option
from clocs_core.cli import main
from clocs_core.data import remote_shards, shards
from clocs_core.plugins.host import installed_entry_points

SMALL = ("data", "prepare", "demo", "--data-root", "data", "-o", "patients=12")


@attrs.frozen
class Where:
    """Options of the engine `room`."""

    address: str = option("", "a folder")


@attrs.frozen
class Room:
    """Does jobs in this process, in another folder."""

    folder: Path
    points: list[FakePoint]
    done: list[Job]
    at_once: int = 1

    def submit(self, job: Job) -> Future[Outcome]:
        ended = Future[Outcome]()
        with chdir(self.folder):
            code = main(list(job.fresh), self.points)
        self.done.append(job)
        ended.set_result(Outcome(error="" if code == 0 else f"exit code {code}"))
        return ended


@pytest.fixture
def done() -> list[Job]:
    return []


@pytest.fixture
def points(done: list[Job], tmp_path: Path) -> list[FakePoint]:
    """The installed plugins, and one with an engine."""

    @contextmanager
    def open_room(options: Where, workplace: Workplace) -> Iterator[Room]:
        workplace.say(f"{workplace.at_once} at once in {options.address}")
        yield Room(Path(options.address), found, done)

    offer = ExecutorOffer(name="room", summary="the next room", options=Where, open=open_room)
    found = [*installed_entry_points(), fake_point("rooms", clocs_executors=lambda: [offer])]
    return found


def bytes_below(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_an_engine_prepares_what_this_machine_does_under_the_paths_that_were_typed(
    points: list[FakePoint],
    done: list[Job],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Paths are relative to the folder of the user, wherever the process of the engine was started."""
    for module, name, value in ((shards, "SHARD", 4), (remote_shards, "PART", 2)):
        monkeypatch.setattr(module, name, value)
    for name in ("here", "there", "other"):
        (tmp_path / name).mkdir()
    with chdir(tmp_path / "here"):
        assert main(SMALL, points) == 0
    said = capsys.readouterr().out.replace("here", "there")
    with chdir(tmp_path / "there"):
        assert main([*SMALL, "--engine", "room", "--address", str(tmp_path / "other"), "--workers", "3"], points) == 0
    assert len(done) == 3
    told = capsys.readouterr()
    assert f"3 at once in {tmp_path / 'other'}" in told.err
    assert told.out == said
    assert bytes_below(tmp_path / "there") == bytes_below(tmp_path / "here")
    assert list((tmp_path / "other").iterdir()) == []


def test_a_machine_without_the_folder_of_the_user_reads_what_is_named_in_full(
    points: list[FakePoint], done: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_shards, "folder_of_part", lambda part: tmp_path / "home of another machine")
    flags = ("--data-root", str(tmp_path / "data"), "--engine", "room", "--address", str(tmp_path))
    assert main(["data", "prepare", "demo", "-o", "patients=4", *flags], points) == 0
    assert len(done) == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--engine", "rom"], "No executor 'rom'. Did you mean 'room'?"),
        (["--engine", "room", "-e", "port=1"], "The engine 'room' has no option 'port=1'. Its options, as NAME=VALUE:"),
        (["--address", "there"], "The engine 'local' has no option 'address=there'."),
    ],
)
@pytest.mark.parametrize("command", [SMALL, ("grid", "run", "linear-main")])
def test_a_mistake_is_refused_before_anything_is_read(
    points: list[FakePoint],
    command: tuple[str, ...],
    flags: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*command, *flags], points) == 2
    assert capsys.readouterr().err.startswith(f"Error: {message}")
