"""A run folder begins in one move, is opened again as it was, and is never mixed with another run."""

from __future__ import annotations

import re

import pytest

from clocs_core.artifacts import run_folder
from clocs_core.artifacts.run_folder import (
    RunFolder,
    create_run_folder,
    open_run_folder,
    refuse_other_settings,
    refuse_taken,
)
from clocs_core.errors import RunFolderError

TABLES = {"run": {"method": "m", "seed": 3}, "data": {"root": "/a", "channels": ["II"]}}


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def test_what_is_written_at_the_beginning_is_read_when_it_is_opened(tmp_path):
    made = create_run_folder(tmp_path / "above" / "run", TABLES)
    assert open_run_folder(tmp_path / "above" / "run") == (made, TABLES)


def test_a_folder_appears_with_its_settings_inside(tmp_path, monkeypatch):
    """A kill before the move leaves nothing under the name of the run."""
    seen = []

    def look(path, data):
        seen.append((path.name, path.parent == tmp_path / "run", (tmp_path / "run").exists()))
        path.write_text(data, encoding="utf-8")

    monkeypatch.setattr(run_folder, "write_atomically", look)
    create_run_folder(tmp_path / "run", TABLES)
    assert seen == [("settings.toml", False, False)]
    assert names_in(tmp_path) == ["run"]


def test_a_folder_that_cannot_be_filled_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_folder, "write_atomically", full)
    with pytest.raises(RunFolderError, match=r"run: No space left on device\.$"):
        create_run_folder(tmp_path / "run", TABLES)
    assert names_in(tmp_path) == []


def test_an_empty_folder_is_used_and_not_replaced(tmp_path):
    """It may be the current folder, or a mounted one."""
    (tmp_path / "run").mkdir()
    before = (tmp_path / "run").stat().st_ino
    create_run_folder(tmp_path / "run", TABLES)
    assert (tmp_path / "run").stat().st_ino == before
    assert open_run_folder(tmp_path / "run")[1] == TABLES


@pytest.mark.parametrize("name", ["taken", "taken/file"])
def test_a_folder_that_holds_something_and_a_file_are_taken(tmp_path, name):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine", encoding="utf-8")
    for make in (refuse_taken, lambda path: create_run_folder(path, TABLES)):
        with pytest.raises(RunFolderError, match=f"{name} is there already.*`out=...`.*`pretrain"):
            make(tmp_path / name)
    assert names_in(tmp_path / "taken") == ["file"]


def test_a_place_below_a_file_is_refused_before_anything_is_computed(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RunFolderError, match="file is not a folder that can be written to"):
        refuse_taken(tmp_path / "file" / "deep" / "run")


def test_a_free_place_is_not_refused_and_not_made(tmp_path):
    refuse_taken(tmp_path / "deep" / "run")
    assert names_in(tmp_path) == []


def test_what_is_no_run_folder_says_what_is_missing(tmp_path):
    with pytest.raises(RunFolderError, match="gone is not a run folder: it is not there"):
        open_run_folder(tmp_path / "gone")
    with pytest.raises(RunFolderError, match=r"is not a run folder: it has no settings\.toml"):
        open_run_folder(tmp_path)


@pytest.mark.parametrize(("text", "why"), [("[run", "is not a TOML file"), ("schema = 99", "of schema 99")])
def test_settings_that_cannot_be_read_are_a_fault_of_the_folder(tmp_path, text, why):
    RunFolder(tmp_path).settings.write_text(text, encoding="utf-8")
    with pytest.raises(RunFolderError, match=why):
        open_run_folder(tmp_path)


def test_a_second_process_is_kept_out_until_the_first_lets_go(tmp_path):
    folder = RunFolder(tmp_path)
    with folder.lock(), pytest.raises(RunFolderError, match="Another process is working in"), folder.lock():
        pass
    with folder.lock():
        pass


# ------------------------------------------------------------------------------------------------------- other settings


@pytest.mark.parametrize(
    "asked",
    [
        TABLES,
        {**TABLES, "data": {"root": "/b", "channels": ["II"]}},
        {**TABLES, "data": {"data_root": "/c", "channels": ["II"]}},
        {**TABLES, "data": {"root": "/a", "channels": []}},
        {**TABLES, "data": {"root": "/a"}},
    ],
    ids=["the same", "another root", "another data_root", "channels not named", "channels not named at all"],
)
def test_other_places_of_data_and_channels_that_are_named_later_are_the_same_run(tmp_path, asked):
    refuse_other_settings(tmp_path, TABLES, asked)


@pytest.mark.parametrize(
    ("asked", "key", "there", "here"),
    [
        ({**TABLES, "run": {"method": "m", "seed": 4}}, "run.seed", "3", "4"),
        ({**TABLES, "run": {"method": "m"}}, "run.seed", "3", "None"),
        ({**TABLES, "loss": {"temperature": 0.1}}, "loss.temperature", "None", "0.1"),
        ({"data": TABLES["data"]}, "run.method", "'m'", "None"),
        ({**TABLES, "data": {"root": "/a", "channels": ["V1"]}}, "data.channels", "['II']", "['V1']"),
        ({**TABLES, "dataset": {"root": "/b"}}, "dataset.root", "None", "'/b'"),
    ],
)
def test_any_other_setting_is_named_with_both_values(tmp_path, asked, key, there, here):
    with pytest.raises(RunFolderError, match=re.escape(f"{key} is {there} there and {here} here")):
        refuse_other_settings(tmp_path, TABLES, asked)
