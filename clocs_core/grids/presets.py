"""The tables of a grid: conditions with a name and a title, as a plugin offers them or a user asks for them."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from clocs_core.contracts.grids import Condition, Figure, GridOffer
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import GridCell, Pretraining


@attrs.frozen(kw_only=True)
class Preset:
    """A table: its conditions, where it is published if it is, and how it is drawn. `GridOffer` says what each is.

    offer: the name of the offered grid whose published scores stand beside ours; "" for none.
    """

    name: str
    title: str
    conditions: tuple[Condition, ...]
    printed_in: str = ""
    figure: Figure = "dots"
    needs_scores: bool = True
    claim: tuple[str, ...] = ()
    offer: str = ""

    @classmethod
    def of(cls, offer: GridOffer) -> Preset:
        """Make the table that a plugin offers."""
        return cls(
            name=offer.name,
            title=offer.summary,
            conditions=tuple(offer.conditions()),
            printed_in=offer.printed_in,
            figure=offer.figure,
            needs_scores=offer.needs_scores,
            claim=offer.claim or (),
            offer=offer.name,
        )

    @property
    def datasets(self) -> tuple[str, ...]:
        """Every data set that is read."""
        return tuple(dict.fromkeys(name for one in self.conditions for name in self.reads(one)))

    def reads(self, one: Condition) -> tuple[str, ...]:
        """List the data sets that a condition of this table needs."""
        return one.reads if self.needs_scores else (one.pretraining,)


def wanted_cells(presets: Iterable[Preset], repeats: Repeats) -> tuple[GridCell, ...]:
    """List every cell of these tables, once."""
    conditions = (one for preset in presets if preset.needs_scores for one in preset.conditions)
    return tuple(dict.fromkeys(cell for one in conditions for cell in repeats.cells(one)))


def wanted_runs(presets: Iterable[Preset], repeats: Repeats) -> tuple[Pretraining, ...]:
    """List every pre-training that is looked at for itself, once."""
    conditions = (one for preset in presets if not preset.needs_scores for one in preset.conditions)
    return tuple(dict.fromkeys(run for one in conditions for run in repeats.runs(one)))
