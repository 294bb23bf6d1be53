"""`clocs doctor`: every finding says what there is, and what to do where something is missing."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

import pytest

from clocs_core.cli import main
from clocs_core.data.signal_file import FORMATS
from clocs_core.plugins.host import installed_entry_points
from clocs_core.plugins.session import open_session
from clocs_core.workflows import doctor
from clocs_core.workflows.doctor import examine

TOPICS = ["versions", "compute", "room", "plugins", "data", "formats"]


@pytest.fixture
def session():
    return open_session(None, ())


def by_name(findings):
    return {one.name: one for one in findings}


def test_every_topic_is_looked_at(session, tmp_path):
    (tmp_path / "chapman").mkdir()
    (tmp_path / "chapman" / "file").touch()
    findings = examine(session, tmp_path)
    assert list(dict.fromkeys(one.topic for one in findings)) == TOPICS
    found = by_name(findings)
    assert found["chapman"].found == str(tmp_path / "chapman")
    assert found["ptbxl"].advice == "clocs data download ptbxl"
    assert found["demo"].state == "ok"
    assert {f"{one.name} ({', '.join(one.endings)})" for one in FORMATS} <= set(found)
    assert found["data root"].found.startswith(f"{tmp_path}: ")


def test_what_is_missing_comes_with_the_command_that_gets_it(session, tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CC", raising=False)
    found = by_name(examine(session, tmp_path))
    assert found["EDF and BDF (.edf, .bdf)"].advice == "pip install 'clocs[edf]'"
    assert found["triton"].advice == "pip install 'clocs[fused]', for the fused kernels on a GPU"
    assert (found["C compiler"].state, found["C compiler"].found) == ("missing", "none")


def test_little_room_and_a_folder_that_cannot_be_written_are_told(session, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: shutil._ntuple_diskusage(10, 9, 1))
    assert by_name(examine(session, tmp_path))["data root"].state == "missing"
    monkeypatch.setattr(doctor.os, "access", lambda place, mode: False)
    assert by_name(examine(session, tmp_path))["data root"].state == "broken"


def test_the_command_prints_lines_or_json_and_its_exit_code_says_what_is_broken(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path))
    whole = [one for one in installed_entry_points() if find_spec(one.module) is not None]
    assert main(["doctor"], whole) == 0
    said = capsys.readouterr().out
    assert all(f"\n{topic}\n" in f"\n{said}" for topic in TOPICS)
    assert "  --  chapman: not here — clocs data download chapman" in said
    broken = [*whole, EntryPoint("odd", "no_such_module_at_all", "clocs")]
    assert main(["doctor", "--json"], broken) == 1
    found = [one for one in json.loads(capsys.readouterr().out) if one["state"] == "broken"]
    assert [(one["topic"], one["name"]) for one in found] == [("plugins", "odd")]
    assert "no_such_module_at_all" in found[0]["advice"]
