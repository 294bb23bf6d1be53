"""An error that nobody foresaw is one sentence: what was done, with which file, whom to tell. No bare traceback."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click
import pytest
from fake_offers import tiny
from fake_plugins import fake_point

import clocs_core.workflows.pretrain
from clocs_core.cli import main
from clocs_core.cli.unforeseen_errors import describe_io, file_at_hand


def run(work: Callable[[], object], *more: str) -> int:
    def add(cli: click.Group) -> None:
        cli.add_command(click.Command("work", callback=work))

    return main(["work", *more], [fake_point("worker", clocs_commands=add)])


def read_damaged(path: Path) -> None:
    if path.read_bytes():
        raise ValueError("not a number:\n  'x'")


def test_it_is_one_sentence_with_the_file_and_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("x")
    assert run(lambda: read_damaged(tmp_path / "a.csv")) == 1
    assert capsys.readouterr().err == (
        f"Error: Unforeseen error, with {tmp_path / 'a.csv'}: ValueError: not a number: 'x'. Please report it to the "
        "authors of clocs, with the output of the same command and --traceback.\n"
    )


def test_the_traceback_is_there_for_whoever_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("x")
    assert run(lambda: read_damaged(tmp_path / "a.csv"), "--traceback") == 1
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert "in read_damaged" in said
    assert main(["run", "--traceback"], []) == 2  # a mistake of the user too
    assert "in choose_method" in capsys.readouterr().err


def test_the_stage_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_plan: object, around: clocs_core.workflows.pretrain.Surroundings) -> None:
        around.show.stage("preparing recordings")
        raise KeyError("gain")

    monkeypatch.setattr(clocs_core.workflows.pretrain, "prepare_run", fail)
    assert main(["run", "--plugin", "cmsc", "--dataset", "demo"]) == 1
    assert "Unforeseen error while preparing recordings: KeyError: 'gain'. Please report" in capsys.readouterr().err


def test_a_plugin_is_named_if_the_error_is_in_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    def add(cli: click.Group) -> None:
        cli.add_command(click.Command("work", callback=lambda: 1 / 0))

    assert main(["work"], [fake_point(__name__, clocs_commands=add)]) == 1  # the functions are of this module
    assert f"report it to the authors of the plugin {__name__!r}, with" in capsys.readouterr().err


def leave(*_: object) -> NoReturn:
    raise SystemExit(3)


def test_a_plugin_that_leaves_python_inside_a_command_of_core_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without this, the command ends with the plugin's code and without a word."""
    plugin = fake_point(__name__, clocs_datasets=lambda: [tiny(scan=leave)])
    assert main(["data", "show", "tiny", "--root", str(tmp_path)], [plugin]) == 1
    said = capsys.readouterr().err
    assert "SystemExit: 3" in said
    assert f"report it to the authors of the plugin {__name__!r}, with" in said


def test_a_command_of_a_plugin_may_end_with_a_code_of_its_own() -> None:
    with pytest.raises(SystemExit) as caught:
        run(leave)
    assert caught.value.code == 3


def test_an_io_error_names_its_file_and_the_room_on_a_full_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python names no file in an error of a write or a seek."""
    (tmp_path / "a.bin").write_bytes(b"x")

    def write() -> None:
        with open(tmp_path / "a.bin", "ab") as file:
            file.write(b"y")
            raise OSError(errno.ENOSPC, "No space left on device")

    def seek() -> None:
        with open(tmp_path / "a.bin", "rb") as file:
            file.seek(-1)

    assert run(write) == 2
    assert f"I/O error with {tmp_path / 'a.bin'}: No space left on device (" in (said := capsys.readouterr().err)
    assert "B free). Files that were on disk are intact." in said
    assert run(seek) == 2
    assert f"I/O error with {tmp_path / 'a.bin'}: Invalid argument." in capsys.readouterr().err


def test_without_any_file_there_is_no_guess() -> None:
    problem = OSError(errno.EINVAL, "Invalid argument")
    problem.add_note("while preparing recordings")
    with pytest.raises(OSError, match="Invalid"):
        raise problem
    assert file_at_hand(problem) is None
    assert describe_io(problem).startswith("I/O error while preparing recordings: Invalid argument.")


def test_a_data_folder_that_cannot_be_made_is_told_with_the_flag_that_names_another(monkeypatch, tmp_path):
    """A user of a container may have no home folder that keeps anything."""
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "home" / "data"))
    told = describe_io(PermissionError(13, "Permission denied", str(tmp_path / "home")))
    assert told.endswith("Name another data folder with --data-root, or by CLOCS_DATA.")
    assert "data-root" not in describe_io(PermissionError(13, "Permission denied", str(tmp_path / "other")))
