"""The measure of a score, and the inputs of tables. Light to import: a list of tables needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from clocs_core.contracts.grids import Condition, Published
from clocs_core.grids.axes import Repeats
from clocs_core.grids.results import Results

Lookup = Callable[[Condition], Published | None]
"""Finds the published score of a condition; None where there is none."""


@attrs.frozen
class Measure:
    """A metric by name, of frames or of recordings, with so many bootstrap samples of patients."""

    metric: str = "auroc"
    level: str = "frame"
    resamples: int = 1000

    @property
    def of(self) -> tuple[str, str]:
        """The metric and the level."""
        return self.metric, self.level


@attrs.frozen(kw_only=True)
class Inputs:
    """The inputs of tables.

    published: how the published scores of an offered grid are found, by its name. at_once: threads that draw. tick:
    called with the draws made and their total.
    """

    repeats: Repeats
    results: Results
    measure: Measure
    published: Mapping[str, Lookup] = attrs.field(factory=dict)
    at_once: int = 1
    tick: Callable[[int, int], None] = lambda done, total: None
