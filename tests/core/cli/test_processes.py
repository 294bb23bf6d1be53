"""Several processes on the command line: which place a process has, who speaks, and what is refused at once."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch.distributed import HashStore

from clocs_core.cli import main, processes, run
from clocs_core.cli.processes import Place, may_speak, read_place, refuse_different_devices
from clocs_core.errors import LostProcess, SettingsError
from clocs_core.progress import COMMAND

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "node-1", "MASTER_PORT": "29500"}


def test_a_process_knows_its_place_from_torchrun() -> None:
    assert read_place(TORCHRUN) == Place(rank=3, count=4, local=1)
    again = {**TORCHRUN, "TORCHELASTIC_RESTART_COUNT": "2", "TORCHELASTIC_RUN_ID": "clocs-run-1"}
    assert read_place(again) == Place(rank=3, count=4, local=1, restarts=2, launched=True, ours=True)


@pytest.mark.parametrize("variables", [{}, {"RANK": "0"}, {**TORCHRUN, "RANK": "0", "WORLD_SIZE": "1"}])
def test_a_process_by_itself_has_no_place(variables: dict[str, str]) -> None:
    """A batch system may set one of the names; one process trains as it always did."""
    assert read_place(variables) is None


@pytest.mark.parametrize(
    "typed",
    [
        "clocs run --gpus 4 --method cmsc --out 'a b'",
        "clocs run --processes=4 --method cmsc --out 'a b'",
        "clocs run --method cmsc --out 'a b' --gpus 4",
    ],
)
def test_each_process_gets_the_command_without_their_number(typed: str) -> None:
    token = COMMAND.set(typed)
    assert processes.words_of_one() == ["run", "--method", "cmsc", "--out", "a b"]
    COMMAND.reset(token)


@pytest.mark.parametrize("more", [["--resume", "d"], ["--resume=d"]])
def test_all_processes_get_one_new_folder_unless_one_is_named(more: list[str]) -> None:
    """Its name has the time, which each process would read for itself."""
    for typed, expected in ((["run"], ["run", "--out", "c"]), (["run", *more], ["run", *more])):
        token = COMMAND.set(" ".join(["clocs", *typed, "--gpus", "2"]))
        assert run._words_of_one(Path("c")) == expected
        COMMAND.reset(token)


def test_more_gpus_than_there_are_are_refused_before_anything_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert main(["run", "--method", "no such method", "--gpus", "8"]) == 2
    assert capsys.readouterr().err == (
        "Error: --gpus 8 starts 8 processes with a GPU each, and torch finds 1 on this machine. Use fewer, or train on "
        "CPUs: --processes 8 --device cpu.\n"
    )


def test_a_process_without_a_gpu_among_others_that_have_one_is_refused() -> None:
    """By gloo in one process and NCCL in another, each would wait for the other for a day."""
    store = HashStore()
    store.set("device-0", "cuda")
    with pytest.raises(
        SettingsError, match="Process 1 of this training has the device 'cpu', and process 0 has 'cuda'"
    ):
        refuse_different_devices(Place(1, 2, 1), store, "cpu")
    refuse_different_devices(Place(1, 2, 1), store, "cuda")


def test_a_process_that_never_comes_is_named() -> None:
    store = HashStore()
    store.set_timeout(timedelta(milliseconds=20))
    with pytest.raises(LostProcess, match="Process 1 of this training does not come"):
        refuse_different_devices(Place(0, 2, 0), store, "cpu")


def test_gpus_and_processes_are_one_or_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--gpus", "2", "--processes", "2"]) == 2
    assert "leave out --processes" in capsys.readouterr().err


def test_an_error_is_said_once_and_a_lost_process_by_who_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "own_place", lambda: Place(1, 2, 1, ours=True))
    monkeypatch.setattr(processes, "_speaking", [lambda: True])
    assert may_speak(SettingsError("a"))
    assert not may_speak(LostProcess("b"))
    monkeypatch.setattr(processes, "_speaking", [lambda: False])
    assert not may_speak(SettingsError("a"))


@pytest.mark.parametrize(("place", "ends"), [(TORCHRUN, [2]), ({}, [])])
def test_a_process_among_others_ends_at_once_after_an_error(
    place: dict[str, str], ends: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While Python shuts down, threads of an open connection can end it by SIGABRT, and the exit code is lost."""
    ended: list[int] = []
    monkeypatch.setattr(processes, "own_place", lambda: read_place(place))
    monkeypatch.setattr(os, "_exit", ended.append)
    assert main(["plugins", "--json"]) == 0
    assert ended == []
    assert main(["plugins", "--no-such-flag"]) == 2
    assert ended == ends
    assert "no-such-flag" in capsys.readouterr().err
