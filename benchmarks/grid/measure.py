"""The measure of a score, and the inputs of tables. Light to import: a list of tables needs no torch."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from paper_results import PaperResults

from grid.axes import Repeats
from grid.results import Results


@attrs.frozen
class Measure:
    """A metric by name, of frames or of recordings, with so many bootstrap samples of patients."""

    metric: str = "auroc"
    level: str = "frame"
    resamples: int = 1000


@attrs.frozen(kw_only=True)
class Inputs:
    """The inputs of tables. at_once: processes that draw. tick: called with the draws made and their total."""

    repeats: Repeats
    results: Results
    paper: PaperResults
    measure: Measure
    at_once: int = 1
    tick: Callable[[int, int], None] = lambda done, total: None
