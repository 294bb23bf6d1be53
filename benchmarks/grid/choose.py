"""Turn what a user asked for into tables: presets of the paper, or a grid of the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
from paper_results import PaperResults

from clocs_core.errors import SettingsError
from grid.axes import Condition, Repeats, product, replace_datasets, replace_downstream, set_axis, set_methods
from grid.cells import PROTOCOLS, RANDOM, GridCell, Pretraining
from grid.tables import Preset, find_preset, paper_presets

_METHODS = ("mt-ssl", "byol", "simclr", "cmlc", "cmsmlc", "cmsc")  # what the paper pre-trains without labels


@attrs.frozen(kw_only=True)
class Axes:
    """Values that replace an axis of a table; an empty axis stays as it is."""

    methods: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    downstream: tuple[str, ...] = ()
    protocols: tuple[str, ...] = attrs.field(default=())
    leads: tuple[str, ...] = ()
    embedding_dims: tuple[int, ...] = attrs.field(default=())
    label_fractions: tuple[float, ...] = attrs.field(default=())
    part: str | None = None

    @protocols.validator
    def _known(self, _attribute: object, value: tuple[str, ...]) -> None:
        for name in value:
            if name not in PROTOCOLS:
                raise SettingsError(f"No protocol {name!r}. There is: {', '.join(PROTOCOLS)}.")

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
        return self._set(product(self.methods or _METHODS, plain or ("",), self.downstream))


def choose_presets(names: Sequence[str], axes: Axes, paper: PaperResults) -> tuple[Preset, ...]:
    """Choose the tables by name and replace their axes, or make the user's own grid where no table is named."""
    if not names:
        if not axes.datasets and not axes.only_random:
            raise SettingsError(
                "Nothing was asked for: name a table (`--list` shows them), or give a grid of your own with "
                "`--datasets` and, if you like, `--methods`, `--downstream`, `--embedding-dims`, `--label-fractions`."
            )
        title = "A grid of your own"
        return (Preset(name="grid", printed_in="", section="", title=title, conditions=axes.grid()),)
    presets = paper_presets(paper)
    found = [find_preset(name, presets) for name in dict.fromkeys(names)]
    chosen = tuple(attrs.evolve(preset, conditions=axes.apply(preset.conditions)) for preset in found)
    for preset in chosen:
        if not preset.conditions:
            raise SettingsError(
                f"Nothing is left of {preset.name} on {', '.join(axes.datasets)}: it fine-tunes on other sets than "
                "it pre-trains on. Choose another with `--datasets`, or leave that table out."
            )
    return chosen


def wanted_cells(presets: Iterable[Preset], repeats: Repeats) -> tuple[GridCell, ...]:
    """List every cell of these tables, once."""
    conditions = (one for preset in presets if preset.needs_scores for one in preset.conditions)
    return tuple(dict.fromkeys(cell for one in conditions for cell in one.cells(repeats)))


def wanted_runs(presets: Iterable[Preset], repeats: Repeats) -> tuple[Pretraining, ...]:
    """List every pre-training that is looked at for itself, once."""
    conditions = (one for preset in presets if not preset.needs_scores for one in preset.conditions)
    return tuple(dict.fromkeys(run for one in conditions for run in one.pretrainings(repeats)))
