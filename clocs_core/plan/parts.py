"""Find the offers that an objective builds on, by their names, and hand them to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from clocs_core.contracts.offers import Loss, Objective
from clocs_core.contracts.setup import Setup
from clocs_core.errors import SettingsError, UnknownName
from clocs_core.plugins.catalogue import Catalogue, Shelf

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn


@attrs.frozen
class _WithParts:
    """The `build` of an objective, whose setup has the parts that its offer names, and no others."""

    build: Callable[[Any, Setup], nn.Module]
    parts: tuple[Objective | Loss, ...]

    def __call__(self, options: Any, setup: Setup) -> nn.Module:
        return self.build(options, attrs.evolve(setup, parts=self.parts))


def with_parts(objective: Objective, catalogue: Catalogue, above: tuple[str, ...] = ()) -> Objective:
    """Return the objective with the offers that it names, and these with theirs. It needs what its parts need.

    above: the objectives that build on this one. Raises UnknownName for a part that is not installed, and SettingsError
    where an objective builds on itself.
    """
    above = (*above, objective.name)
    if objective.name in above[:-1]:
        circle = " on ".join(map(repr, above))
        raise SettingsError(f"The objective builds on itself: {circle}. Its plugin has to be repaired.")
    losses = [_find(objective, catalogue.losses, name) for name in objective.losses]
    others = [_find(objective, catalogue.objectives, name) for name in objective.objectives]
    others = [with_parts(one, catalogue, above) for one in others]
    if not losses and not others:
        return objective
    return attrs.evolve(
        objective,
        build=_WithParts(objective.build, (*others, *losses)),
        sequence=objective.sequence or any(one.sequence for one in others),
        columns=tuple(dict.fromkeys(column for one in (objective, *others) for column in one.columns)),
    )


def _find(objective: Objective, shelf: Shelf[Any], name: str) -> Any:
    try:
        return shelf.get(name).offer
    except UnknownName as problem:
        raise UnknownName(f"Objective {objective.name!r} builds on a part that is not installed. {problem}") from None
