"""Pictures that other processes draw: the same bytes, also when these processes are killed."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import Executor

import pytest
import torch

from clocs_core.workflows.drawing import Drawing, drawing_beside

GPU = torch.device("cuda")


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)  # one process


def process_of(word: str) -> tuple[str, int]:
    return word, os.getpid()


def die_elsewhere(parent: int) -> str:
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return "drawn"


def test_on_a_cpu_the_run_draws_when_the_picture_is_asked_for() -> None:
    drawn: list[str] = []
    with drawing_beside(torch.device("cpu")) as here:
        assert here is not None
        wait = here.begin(drawn.append, "a")
        assert drawn == []
        wait()
        assert drawn == ["a"]


def test_none_are_drawn_where_none_are_wanted() -> None:
    for device in (GPU, torch.device("cpu")):
        with drawing_beside(device, wanted=False) as none:
            assert none is None


def test_beside_a_gpu_another_process_draws_the_same_and_ends_with_the_run() -> None:
    with drawing_beside(GPU) as elsewhere:
        assert elsewhere is not None
        word, process = elsewhere.begin(process_of, "a")()
        assert (word, process != os.getpid()) == ("a", True)
        os.kill(process, 0)  # it is there
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_run_has_its_pictures_when_the_processes_are_killed() -> None:
    with drawing_beside(GPU) as elsewhere:
        assert elsewhere is not None
        assert elsewhere.begin(die_elsewhere, os.getpid())() == "drawn"
        assert elsewhere.begin(process_of, "after")() == ("after", os.getpid())  # none is left


def test_what_another_process_cannot_be_given_is_drawn_here() -> None:
    lock = threading.Lock()  # cannot be sent to it
    with drawing_beside(GPU) as elsewhere:
        assert elsewhere is not None
        assert elsewhere.begin(repr, lock)() == repr(lock)


def test_a_mistake_in_drawing_is_raised() -> None:
    with drawing_beside(GPU) as elsewhere:
        assert elsewhere is not None
        with pytest.raises(ValueError, match="invalid literal"):
            elsewhere.begin(int, "no number")()


def test_runs_of_one_process_share_the_processes_until_the_last_one_ends() -> None:
    def pool_of(one: Drawing | None) -> Executor:
        assert one is not None
        assert one.processes is not None
        return one.processes

    with drawing_beside(GPU) as first:
        with drawing_beside(GPU) as second:
            assert pool_of(first) is pool_of(second)
        assert pool_of(first).submit(len, "abc").result() == 3
    with drawing_beside(GPU) as later:
        assert pool_of(later) is not pool_of(first)


def test_a_machine_with_one_core_draws_in_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with drawing_beside(GPU) as here:
        assert here is not None
        assert here.processes is None
