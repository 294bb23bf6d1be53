"""Check that a call is quick, in processor time, so that other work of the machine does not count."""

from __future__ import annotations

from collections.abc import Callable

from clocs_core.testing.checks import expect

Clock = Callable[[], float]  # s of processor time since a fixed moment, as time.process_time

BUDGET = 2.0  # s of processor time; the inputs are small and take milliseconds when computed at once


def expect_quick(call: Callable[[], object], what: str, change: str, clock: Clock) -> None:
    """Raise ConformanceError if the quicker of two calls exceeds the budget; the first may import modules."""
    best = float("inf")
    for _ in range(2):
        began = clock()
        call()
        best = min(best, clock() - began)
        if best <= BUDGET:
            return
    expect(False, f"{what} within {BUDGET} s of processor time", f"{best:.2f} s", change)
