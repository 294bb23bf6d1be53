"""A run folder is reserved before anything else, opened again as it was, and never mixed with another run."""

from __future__ import annotations

import os
import re
import shutil

import pytest
from begun_folders import begin_folder
from filelock import FileLock, Timeout

from clocs_core.artifacts.run_folder import (
    RunFolder,
    open_run_folder,
    refuse_other_settings,
    refuse_taken,
)
from clocs_core.errors import RunFolderError

TABLES = {"run": {"method": "m", "seed": 3}, "data": {"root": "/a", "channels": ["II"]}}


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def begin(folder):
    folder.settings.write_text("schema = 1\n", encoding="utf-8")


def test_a_folder_is_there_and_locked_while_it_is_reserved(tmp_path):
    """Two runs that begin at the same moment must not both find the place free."""
    folder = RunFolder(tmp_path / "above" / "run")
    with folder.reserve():
        assert names_in(folder.path) == [".lock"]
        refused = pytest.raises(RunFolderError, match=r"Another process is working in .*run; wait.*`out=\.\.\.`")
        with refused, RunFolder(folder.path).reserve():
            pass
        begin(folder)
    assert sorted(names_in(folder.path)) == [".lock", "settings.toml"]


def test_a_folder_without_settings_leaves_nothing_behind(tmp_path):
    """A run that is refused for its recordings must not leave a folder that somebody has to clean up."""
    (tmp_path / "there").mkdir()
    for path in (tmp_path / "deep" / "er" / "run", tmp_path / "there"):
        with pytest.raises(KeyboardInterrupt), RunFolder(path).reserve():
            raise KeyboardInterrupt
    assert names_in(tmp_path) == ["there"]
    assert names_in(tmp_path / "there") == []


def test_a_folder_that_another_process_began_beside_it_stays(tmp_path):
    with RunFolder(tmp_path / "runs" / "a").reserve():
        (tmp_path / "runs" / "b").mkdir()
    assert names_in(tmp_path / "runs") == ["b"]


def test_a_folder_that_is_removed_at_this_moment_is_made_again(tmp_path, monkeypatch):
    """A process that is refused removes the folder, perhaps after another one has found it there."""
    folder, acquire, times = RunFolder(tmp_path / "run"), FileLock.acquire, []

    def too_late(lock, *more, **named):
        made = acquire(lock, *more, **named)
        times.append(len(times))
        if len(times) == 1:
            shutil.rmtree(folder.path)
        return made

    monkeypatch.setattr(FileLock, "acquire", too_late)
    with folder.reserve():
        assert names_in(folder.path) == [".lock"]
    assert len(times) == 2


def test_a_lock_that_is_waited_for_inside_is_not_taken_for_another_process(tmp_path):
    """A preparation has a lock of its own; its trouble is not that of the run folder."""
    with pytest.raises(Timeout), RunFolder(tmp_path / "run").reserve():
        raise Timeout("prepared.lock")


def test_what_a_killed_process_left_half_written_is_swept(tmp_path):
    """Checkpoints are large; those of many kills would fill the disk. Files of others and of live processes stay."""
    folder = RunFolder(tmp_path)
    begin(folder)
    dead, alive = 2**22 + 1, os.getppid()  # more than Linux gives to processes; the parent of this one
    for name in ("cells", "evaluations"):
        (tmp_path / name).mkdir()
    left = [tmp_path / f".checkpoint.safetensors.{dead}.tmp", tmp_path / "cells" / f".a.npz.{dead}.tmp"]
    kept = [
        tmp_path / f".checkpoint.safetensors.{alive}.tmp",
        tmp_path / "evaluations" / f".a.{dead}.tmp",
        tmp_path / "mine.tmp",
        tmp_path / ".mine.tmp",
    ]
    for path in (*left, *kept):
        path.write_bytes(b"half")
    with folder.reserve():
        assert [path.exists() for path in left] == [False, False]
    assert all(path.exists() for path in kept)


def test_a_place_where_a_run_was_killed_before_it_began_is_free(tmp_path):
    for name in (".lock", ".settings.toml.123.tmp"):
        (tmp_path / name).touch()
    refuse_taken(tmp_path)


@pytest.mark.parametrize("name", ["taken", "taken/file"])
def test_a_folder_that_holds_something_and_a_file_are_taken(tmp_path, name):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(RunFolderError, match=f"{name} is there already.*`out=...`.*`pretrain"):
        refuse_taken(tmp_path / name)
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


def test_an_evaluation_is_no_run_and_says_what_to_open_instead(tmp_path):
    path = begin_folder(tmp_path / "run" / "evaluations" / "e", {"evaluation": {}}).path
    with pytest.raises(RunFolderError, match=r"e is an evaluation, not a run: it has no encoder.*`clocs compare`"):
        open_run_folder(path)
    (tmp_path / "run" / "encoder.safetensors").touch()
    with pytest.raises(RunFolderError, match=f"its encoder is that of the run {tmp_path / 'run'}"):
        open_run_folder(path)


# ------------------------------------------------------------------------------------------------------- other settings


def test_a_framing_that_is_not_asked_for_may_follow_from_the_recordings(tmp_path):
    """A call that is repeated to resume a run does not know it before the files are read."""
    stored = {**TABLES, "pretrain_framing": {"source_samples": 250}}
    refuse_other_settings(tmp_path, stored, TABLES)
    with pytest.raises(RunFolderError, match=r"pretrain_framing\.source_samples is 250 there and 500 here"):
        refuse_other_settings(tmp_path, stored, {**TABLES, "pretrain_framing": {"source_samples": 500}})


def test_a_constant_that_is_not_asked_for_may_follow_from_the_recordings(tmp_path):
    stored = {**TABLES, "data": {**TABLES["data"], "constant": 0.2}}
    refuse_other_settings(tmp_path, stored, {**TABLES, "data": {**TABLES["data"], "constant": "none"}})
    with pytest.raises(RunFolderError, match=r"data\.constant is 0\.2 there and 0\.3 here"):
        refuse_other_settings(tmp_path, stored, {**TABLES, "data": {**TABLES["data"], "constant": 0.3}})


def test_a_setting_that_an_earlier_version_did_not_store_had_its_default(tmp_path):
    """Else no run of an earlier version could be resumed by the call that began it."""
    now = {**TABLES, "evaluate": {"part": "test"}}
    refuse_other_settings(tmp_path, {**TABLES, "evaluate": {}}, now)
    with pytest.raises(RunFolderError, match=r"evaluate\.part is 'test' there and 'validation' here"):
        refuse_other_settings(tmp_path, {**TABLES, "evaluate": {}}, {**TABLES, "evaluate": {"part": "validation"}})


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
