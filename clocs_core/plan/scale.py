"""Keep the scale of the signals that an encoder was trained on, where recordings are in another unit."""

from __future__ import annotations

import attrs

from clocs_core.contracts.records import SCALE_FREE
from clocs_core.contracts.units import factor_between
from clocs_core.settings.sections import DataSettings


@attrs.frozen
class Scale:
    """How an encoder scales its signals. constant: the divisor in `unit`, where `normalise` is "constant"."""

    normalise: str
    constant: float | None
    unit: str

    def settings(self, data: DataSettings, unit: str) -> DataSettings:
        """Return the settings that give recordings in `unit` this scale, where the units convert.

        The settings stay where each signal is scaled by itself, and where the user asked for another scale.
        """
        factor = factor_between(unit, self.unit)
        kept = (data.normalise, data.constant) == (self.normalise, self.constant)
        if data.normalise in SCALE_FREE or not kept or factor is None or factor == 1.0:
            return data
        return attrs.evolve(data, normalise="constant", constant=(self.constant or 1.0) / factor)

    def warning(self, data: DataSettings, unit: str) -> str:
        """Return a sentence where these settings leave signals on another scale because of their unit; else ""."""
        same = factor_between(unit, self.unit) == 1.0
        if data.normalise in SCALE_FREE or same or self.settings(data, unit) != data:
            return ""
        return (
            f"the encoder was trained on signals in {self.unit or 'no unit'}, and these are in {unit or 'no unit'}: "
            "their scale may be another; an encoder that is trained with `normalise='z-score'` does not depend on it"
        )
