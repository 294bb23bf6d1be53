"""Whether a call is quick, in processor time: what else the machine does at the time is nobody's fault."""

from __future__ import annotations

import time
from collections.abc import Callable

from clocs_core.testing.checks import expect

__all__ = ["expect_quick"]

BUDGET = 2.0  # s of processor time; what is tried is small, and takes milliseconds where it is computed in one piece


def expect_quick(call: Callable[[], object], what: str, change: str) -> None:
    """Raise ConformanceError where the quicker of two calls takes longer than the budget: the first may import."""
    best = float("inf")
    for _ in range(2):
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
        if best <= BUDGET:
            return
    expect(False, f"{what} within {BUDGET} s of processor time", f"{best:.2f} s", change)
