"""How steps are timed on a machine without a GPU, and what is said where nothing is."""

from __future__ import annotations

import time

import pytest
import step_clock
import torch
from step_clock import clock, milliseconds, unless_late


def test_a_step_takes_what_it_takes():
    """Of several steps in a row, the time of one."""
    assert 2 <= milliseconds(lambda: time.sleep(0.002), 3, on_gpu=False) < 20


def test_quartiles_enclose_the_median(monkeypatch):
    """And the file says of how many samples of how many steps they are."""
    monkeypatch.setattr(step_clock, "MOST_SECONDS", 0.01)
    found = clock(lambda: None, on_gpu=False)
    low, high = found["quartiles_ms"]
    assert low <= found["median_ms"] <= high
    assert found["samples"] >= 3
    assert found["steps"] == 200


def test_what_there_is_no_time_or_no_memory_for_is_named():
    """A gap in a table is told from a failure."""

    def too_large():
        raise torch.OutOfMemoryError("no")

    soon = time.monotonic() + 60
    assert unless_late(soon, lambda: 7) == 7
    assert unless_late(soon, too_large) == "out of memory"
    assert unless_late(time.monotonic() - 1, pytest.fail) == "not measured: out of time"
