"""Units of voltage that convert into each other exactly."""

from __future__ import annotations

MICROVOLTS = {"V": 1_000_000, "mV": 1000, "uV": 1, "µV": 1, "μV": 1}
"""Microvolts in one of each unit. The last two names are the micro sign and the Greek letter."""


def factor_between(unit: str, wanted: str) -> float | None:
    """Return the factor that converts samples in `unit` to another one. None: they do not convert."""
    if unit == wanted:
        return 1.0
    return MICROVOLTS[unit] / MICROVOLTS[wanted] if {unit, wanted} <= MICROVOLTS.keys() else None
