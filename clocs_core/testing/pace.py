"""Whether a call is quick, in processor time: what else the machine does at the time is nobody's fault."""

from __future__ import annotations

from collections.abc import Callable

from clocs_core.testing.checks import expect

Clock = Callable[[], float]  # s of processor time since any fixed moment, as time.process_time

BUDGET = 2.0  # s of processor time; what is tried is small, and takes milliseconds where it is computed in one piece


def expect_quick(call: Callable[[], object], what: str, change: str, clock: Clock) -> None:
    """Raise ConformanceError where the quicker of two calls takes longer than the budget: the first may import."""
    best = float("inf")
    for _ in range(2):
        began = clock()
        call()
        best = min(best, clock() - began)
        if best <= BUDGET:
            return
    expect(False, f"{what} within {BUDGET} s of processor time", f"{best:.2f} s", change)
