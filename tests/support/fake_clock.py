"""A clock that changes only by `advance`, so that tests of slow work take no time.

It imports nothing, so that the module of a fake plugin can use it in a separate process.
"""

from __future__ import annotations

_moment = [0.0]  # s


def now() -> float:
    """Return the time, in seconds."""
    return _moment[0]


def advance(seconds: float) -> None:
    """Move the clock forward."""
    _moment[0] += seconds
