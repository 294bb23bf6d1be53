"""A run that is killed before any of its file operations is resumed, and ends as if nobody had killed it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import attrs
import pytest
from fake_runs import RUN, points
from killed_runs import Work, contents_of, finish, kill_before, list_operations

import clocs_core.workflows.pretrain
from clocs_core.cli import main

TENSORBOARD = EntryPoint("tensorboard", "clocs_plugins.tensorboard", "clocs.plugins")


@attrs.frozen
class Place:
    """A folder with one run, and the data beside it."""

    folder: Path

    @property
    def run(self) -> Path:
        return self.folder / "runs" / "run"

    def start(self) -> int:
        """Begin the run, or go on with it, as the user would who looks at the folder."""
        if (self.run / "settings.toml").exists():
            arguments = ["run", "--resume", str(self.run)]
        else:
            arguments = [*RUN, "--data-root", str(self.folder / "data"), "--out", str(self.run)]
        return main([*arguments, "--workers", "1"], [*points(), TENSORBOARD])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place for runs without pictures, which take most of the time of so small a run and are never read again."""
    here = Place(tmp_path_factory.mktemp("kills"))
    with pytest.MonkeyPatch.context() as patch:
        for begin in ("_begin_training_pictures", "_begin_result_pictures"):
            patch.setattr(clocs_core.workflows.pretrain, begin, lambda *_: ())
        assert here.start() == 0  # in this process, so that forks have all that a run imports
        shutil.rmtree(here.folder / "runs")
        yield here


def differences(found: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    return sorted(name for name in found.keys() | whole.keys() if found.get(name) != whole.get(name))


@pytest.mark.slow
def test_a_kill_before_any_file_operation_changes_nothing_but_the_time(place: Place) -> None:
    work: Work = place.start
    operations = list_operations(work, place.folder / "runs")
    whole = contents_of(place.run)
    assert operations[-1] == "remove run/.told"
    wrong = {}
    for number, operation in enumerate(operations, start=1):
        shutil.rmtree(place.folder / "runs")
        assert kill_before(number, work, place.folder / "runs") == operation
        finish(work, place.folder / "runs")
        if different := differences(contents_of(place.run), whole):
            wrong[f"{number}: {operation}"] = different
    assert wrong == {}


@pytest.mark.slow
def test_a_kill_while_a_killed_run_is_resumed_changes_nothing_either(place: Place) -> None:
    work: Work = place.start
    shutil.rmtree(place.folder / "runs", ignore_errors=True)
    operations = list_operations(work, place.folder / "runs")
    whole = contents_of(place.run)
    saved = [number for number, name in enumerate(operations, start=1) if name == "rename run/checkpoint.safetensors"]
    for first, second in ((saved[0] + 1, 7), (saved[-1] + 1, 5), (len(operations), 3), (len(operations) - 3, 20)):
        shutil.rmtree(place.folder / "runs")
        kill_before(first, work, place.folder / "runs")
        kill_before(second, work, place.folder / "runs")
        finish(work, place.folder / "runs")
        assert differences(contents_of(place.run), whole) == [], (first, second)
