"""Divide the lines of a table into panels of a figure. Lines of a panel differ in method and along its axis only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from clocs_core.contracts.grids import Condition
from clocs_core.grids.summary import Line


@attrs.frozen
class Axis:
    """The axis of a figure. field: the field of a condition that it shows; title: its label."""

    field: str
    title: str

    def of(self, one: Condition) -> float:
        """Find where a condition stands on this axis."""
        return float(getattr(one, self.field))


LABELS = Axis("label_fraction", "F, the share of labels")
DIMENSION = Axis("embedding_dim", "E, the embedding dimension")


@attrs.frozen
class Panel:
    """One pair of axes: the lines in it, and a title that tells it from the other panels."""

    title: str
    lines: tuple[Line, ...]


def panels_of(lines: Iterable[Line], along: Axis | None = None) -> tuple[Panel, ...]:
    """Group the lines by panel, in their order."""
    hidden: dict[str, Any] = {along.field: 0} if along else {}
    panels: dict[Condition, list[Line]] = {}
    for line in lines:
        panels.setdefault(attrs.evolve(line.condition.context, **hidden), []).append(line)
    titles = _titles(list(panels))
    return tuple(Panel(title, tuple(found)) for title, found in zip(titles, panels.values(), strict=True))


_MORE: tuple[Callable[[Condition], str], ...] = (
    lambda one: f"for {_say_sets(one.printed_pretraining, one.printed_downstream)}",
    lambda one: one.protocol,
    lambda one: f"{one.leads or 'own'} leads",
    lambda one: f"E = {one.embedding_dim}",
    lambda one: f"F = {one.label_fraction:g}",
    lambda one: f"{one.part} patients",
    lambda one: one.exposure.replace("=", " ") or "own exposure",
)


def _titles(places: Sequence[Condition]) -> list[str]:
    """Title each panel by its data sets and what else the panels differ in."""
    sets = {(one.pretraining, one.downstream) for one in places}
    stands = len({(*_sets(one), one.printed_pretraining, one.printed_downstream) for one in places}) > len(sets)
    asked = [say for say in _MORE if len({say(one) for one in places}) > 1]
    asked = asked if stands else [say for say in asked if say is not _MORE[0]]
    return [", ".join([_say_sets(*_sets(one)), *(say(one) for say in asked)]) for one in places]


def _sets(one: Condition) -> tuple[str, str]:
    return one.pretraining, one.downstream


def _say_sets(pretraining: str, downstream: str) -> str:
    return pretraining if pretraining == downstream else f"{pretraining} → {downstream}"
