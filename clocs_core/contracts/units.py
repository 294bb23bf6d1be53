"""Units of voltage that convert into each other exactly."""

from __future__ import annotations

MICROVOLTS = {"V": 1_000_000, "mV": 1000, "uV": 1, "µV": 1, "μV": 1}
"""Microvolts in one of each unit. The last two names are the micro sign and the Greek letter."""
