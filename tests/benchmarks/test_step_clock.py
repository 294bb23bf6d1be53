"""How steps are timed on a machine without a GPU, and what is said where nothing is."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace

import pytest
import step_clock
import torch
from step_clock import clock, milliseconds, unless_late


def stepped(monkeypatch, seconds):
    """Return a step that takes these seconds, again and again, by the clock that step_clock looks at."""
    now, lengths = [0.0], itertools.cycle(seconds)
    monkeypatch.setattr(step_clock, "time", SimpleNamespace(perf_counter=lambda: now[0], monotonic=time.monotonic))

    def step():
        now[0] += next(lengths)

    return step


def test_a_step_takes_what_it_takes(monkeypatch):
    """Of several steps in a row, the time of one."""
    assert milliseconds(stepped(monkeypatch, [0.002, 0.003, 0.004]), 3, on_gpu=False) == pytest.approx(3)


def test_quartiles_enclose_the_median(monkeypatch):
    """And the file says of how many samples of how many steps they are."""
    found = clock(stepped(monkeypatch, [0.004, 0.006, 0.005, 0.007, 0.009]), on_gpu=False)
    low, high = found["quartiles_ms"]
    assert 5.5 <= low < found["median_ms"] < high <= 6.75  # four of five in a row: 31 ms less one of them
    assert (found["steps"], found["samples"]) == (4, 15)  # the fourth takes 7 ms: four last 25 ms


def test_steps_that_take_next_to_nothing_are_measured_by_the_hundred(monkeypatch):
    found = clock(stepped(monkeypatch, [1e-7]), on_gpu=False)
    assert (found["steps"], found["samples"]) == (200, 15)
    assert found["median_ms"] == pytest.approx(1e-4)


def test_what_there_is_no_time_or_no_memory_for_is_named():
    """A gap in a table is told from a failure."""

    def too_large():
        raise torch.OutOfMemoryError("no")

    soon = time.monotonic() + 60
    assert unless_late(soon, lambda: 7) == 7
    assert unless_late(soon, too_large) == "out of memory"
    assert unless_late(time.monotonic() - 1, pytest.fail) == "not measured: out of time"
