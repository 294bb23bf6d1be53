"""A clock that stands still until somebody moves it: what is slow by it costs a test no time.

It imports nothing, so that the module of a made-up plugin may use it in a process of its own.
"""

from __future__ import annotations

_moment = [0.0]  # s


def now() -> float:
    """The time, in seconds."""
    return _moment[0]


def advance(seconds: float) -> None:
    """Let time pass."""
    _moment[0] += seconds
