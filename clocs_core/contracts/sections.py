"""The input and output of a report section: the findings of a run, and tables or pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from clocs_core.contracts.events import EmbeddingMap
from clocs_core.contracts.records import Task
from clocs_core.contracts.scores import Comparison, Score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@attrs.frozen(eq=False, kw_only=True)
class Findings:
    """The results of a run that a section of its report may show. Change none of the arrays.

    predictions: by protocol, init and label fraction, what was predicted (n, output) for the same rows. `label` is as
    in `Features`; `patient` and `record` are names. All are empty where there is no score.
    """

    method: str
    dataset: str
    task: Task
    scores: tuple[Score, ...]
    comparisons: tuple[Comparison, ...]
    embeddings: EmbeddingMap
    predictions: Mapping[tuple[str, str, float], NDArray[np.float64]] = attrs.field(factory=dict)
    label: NDArray[Any] | None = None
    patient: tuple[str, ...] = ()
    record: tuple[str, ...] = ()


def _cells(rows: Iterable[Iterable[object]]) -> tuple[tuple[object, ...], ...]:
    return tuple(tuple(row) for row in rows)


def _names(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(items)


@attrs.frozen
class ReportTable:
    """A table of a report. Cells are shown as text; a float has three decimals."""

    title: str
    headings: tuple[str, ...] = attrs.field(converter=_names)
    rows: tuple[tuple[object, ...], ...] = attrs.field(converter=_cells)
    caption: str = ""

    def __attrs_post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.headings):
                raise ValueError(
                    f"table {self.title!r} has a row of {len(row)} cells, expected {len(self.headings)} as its headings"
                )
