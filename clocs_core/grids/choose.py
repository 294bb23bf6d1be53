"""Turn what a user asked for into tables: those that plugins offer, or a grid of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from clocs_core.contracts.grids import Condition, GridOffer
from clocs_core.contracts.scores import RANDOM
from clocs_core.errors import SettingsError
from clocs_core.grids.axes import (
    product,
    read_exposure,
    replace_datasets,
    replace_downstream,
    set_axis,
    set_methods,
)
from clocs_core.grids.presets import Preset


@attrs.frozen(kw_only=True)
class Axes:
    """Values that replace an axis of a table; an empty axis stays as it is."""

    methods: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    downstream: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    embedding_dims: tuple[int, ...] = attrs.field(default=())
    label_fractions: tuple[float, ...] = attrs.field(default=())
    part: str | None = None
    exposures: tuple[str, ...] = ()

    @embedding_dims.validator
    def _positive(self, _attribute: object, value: tuple[int, ...]) -> None:
        for dim in value:
            if dim < 1:
                raise SettingsError(f"An embedding dimension E is a number from 1, got {dim}.")

    @label_fractions.validator
    def _shares(self, _attribute: object, value: tuple[float, ...]) -> None:
        for share in value:
            if not 0 < share <= 1:
                raise SettingsError(f"A share F of labels is above 0 and at most 1, got {share:g}.")

    def apply(self, conditions: Iterable[Condition]) -> tuple[Condition, ...]:
        """Set these values on the axes of the conditions."""
        found = replace_datasets(conditions, self.datasets)
        found = replace_downstream(found, self.downstream) if self.downstream else found
        return self._set(set_methods(found, self.methods) if self.methods else found)

    def _set(self, found: tuple[Condition, ...]) -> tuple[Condition, ...]:
        values = {
            "protocol": self.protocols,
            "leads": tuple(one.replace("+", ",") for one in self.leads),
            "embedding_dim": self.embedding_dims,
            "label_fraction": self.label_fractions,
            "part": (self.part,) if self.part else (),
            "exposure": tuple(map(read_exposure, self.exposures)),
        }
        for axis, chosen in values.items():
            found = set_axis(found, axis, chosen) if chosen else found
        # Methods of one place stand together, whichever axis was set last.
        contexts = list(dict.fromkeys(one.context for one in found))
        return tuple(sorted(found, key=lambda one: contexts.index(one.context)))

    @property
    def only_random(self) -> bool:
        """Whether nothing is pre-trained, so that no data set is needed for it: only one to be evaluated on."""
        return set(self.methods) == {RANDOM} and bool(self.downstream)

    def grid(self) -> tuple[Condition, ...]:
        """Make the grid of these values alone."""
        plain = [name.rpartition("=")[2] for name in self.datasets]
        return self._set(product(self.methods, plain or ("",), self.downstream))


def choose_presets(names: Sequence[str], axes: Axes, find: Callable[[str], GridOffer]) -> tuple[Preset, ...]:
    """Choose tables by name and replace their axes, or make the user's own grid where no table is named.

    find: looks an offered grid up by its name. Raises SettingsError where nothing is left of a table.
    """
    if not names:
        return (Preset(name="grid", title="A grid of your own", conditions=axes.grid()),)
    found = [Preset.of(find(name)) for name in dict.fromkeys(names)]
    chosen = tuple(attrs.evolve(preset, conditions=axes.apply(preset.conditions)) for preset in found)
    for preset in chosen:
        if not preset.conditions:
            raise SettingsError(
                f"Nothing is left of {preset.name} on {', '.join(axes.datasets)}: it fine-tunes on other sets than "
                "it pre-trains on. Choose another data set, or leave that table out."
            )
    return chosen
