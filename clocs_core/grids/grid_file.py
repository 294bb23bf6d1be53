"""Read a grid from a TOML file, or from names and axes on a command line.

encoder = "…"                # of the method `random`

[axes]
method = ["a", "b:loss=x"]
dataset = ["d"]
seed = [0, 1, 2]
temperature = [0.1, 0.2]     # any option of the pre-training

[run]                        # options of every run; [evaluate], [finetune]: of every evaluation, of fine-tuning
epochs = 20

[[cells]]                    # instead of all combinations: each sets some axes, and takes all values of the others
name = "long"
epochs = 400
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import RANDOM
from clocs_core.errors import ClocsError, SettingsError, neighbours
from clocs_core.grids.axes import Repeats, read_method
from clocs_core.grids.choose import Axes, choose_presets
from clocs_core.grids.definition import Grid
from clocs_core.grids.presets import Preset
from clocs_core.plan.pretraining import resolve
from clocs_core.plan.protocols import find_protocol
from clocs_core.plugins.catalogue import Catalogue

_PLACES = (
    "method",
    "dataset",
    "downstream",
    "protocol",
    "leads",
    "embedding_dim",
    "label_fraction",
    "part",
    "exposure",
)
_REPEATED = ("seed", "split_seed")
_OPTIONS = ("run", "evaluate", "finetune")
_KEYS = ("title", "grid", "encoder", "axes", "cells", *_OPTIONS)

Values = dict[str, tuple[str, ...]]
"""The values of each axis as text; "," within a value is written "+" on a command line."""


@attrs.frozen(kw_only=True)
class Asked:
    """A grid as a user wrote it. grids: names of offered grids to begin with; cells: values of each named cell."""

    name: str
    title: str = ""
    grids: tuple[str, ...] = ()
    axes: Values = attrs.field(factory=dict)
    cells: Mapping[str, Values] = attrs.field(factory=dict)
    options: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    encoder: str = ""


def read_grid_file(path: Path) -> Asked:
    """Read a TOML file. Raises SettingsError where it is not there, is no TOML, or has what no grid has."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise SettingsError(f"Cannot read the grid {path}: {problem.strerror}.") from None
    except (ValueError, RecursionError) as problem:  # no TOML, no UTF-8
        raise SettingsError(f"{path} is not a TOML file: {problem}.") from None
    for key in found:
        if key not in _KEYS:
            hint = neighbours(key, _KEYS)
            raise SettingsError(
                f"{path}: a grid has no {key!r}.{hint} It has {', '.join(_KEYS)}; axes go under [axes]."
            )
    return Asked(
        name=path.stem,
        title=_text(found.get("title", ""), f"{path}: title"),
        grids=_items(found.get("grid", ()), f"{path}: grid"),
        axes=_table(found.get("axes", {}), f"{path}: [axes]"),
        cells=dict(_cells(found.get("cells", []), path)),
        options={kind: _assigned(_table(found.get(kind, {}), f"{path}: [{kind}]")) for kind in _OPTIONS},
        encoder=_text(found.get("encoder", ""), f"{path}: encoder"),
    )


def read_axes(given: Sequence[str]) -> Values:
    """Read axes as they are typed, "seed=0,1,2". Raises SettingsError where one has no values."""
    axes: Values = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise SettingsError(f"An axis is NAME=VALUE,VALUE, such as seed=0,1,2, got {text!r}.")
        axes[name] = tuple(value.replace("+", ",") for value in values.split(","))
    return axes


def settle_grid(asked: Asked, catalogue: Catalogue, only: Sequence[str] = ()) -> Grid:
    """Make the grid of what was asked for. Raises ClocsError for a name that is not known, or that stands twice.

    only: the tables to keep, all where it is empty. The others are not checked: an axis may not suit them.
    """
    for name, values in asked.axes.items():
        if len(set(values)) < len(values):
            raise SettingsError(f"The axis {name!r} has a value twice: {', '.join(values)}.")
    if asked.grids and asked.cells:
        raise SettingsError("A grid that begins with `grid` has its cells from there: leave out [[cells]].")
    kinds = {kind: asked.options.get(kind, ()) for kind in _OPTIONS}
    repeats = Repeats(
        seeds=_numbers(asked.axes, "seed", int) or (0,),
        splits=_numbers(asked.axes, "split_seed", int) or (0,),
        pretrain_options=kinds["run"],
        evaluate_options=kinds["evaluate"],
        finetune_options=kinds["finetune"],
        encoder=asked.encoder,
    )
    presets = tuple(_offered(asked, catalogue)) if asked.grids else (_own(asked),)
    grid = Grid(presets=_keep_tables(presets, only), repeats=repeats)
    check_grid(grid, catalogue)
    return grid


def _keep_tables(presets: tuple[Preset, ...], names: Sequence[str]) -> tuple[Preset, ...]:
    """Keep some tables; all where none is named. Raises SettingsError for a name that there is not."""
    known = [preset.name for preset in presets]
    for name in names:
        if name not in known:
            raise SettingsError(f"The grid has no table {name!r}.{neighbours(name, known)} It has {', '.join(known)}.")
    return tuple(one for one in presets if not names or one.name in names)


def check_grid(grid: Grid, catalogue: Catalogue) -> None:
    """Refuse names and options that nothing installed knows, before anything is run. Raises ClocsError."""
    for protocol in dict.fromkeys(one.protocol for preset in grid.presets for one in preset.conditions):
        find_protocol(catalogue, protocol)
    conditions = (one for preset in grid.presets for one in preset.conditions)
    for run in dict.fromkeys(grid.repeats.runs(one)[0] for one in conditions):
        if run.trains:
            try:
                tables: dict[str, dict[str, object]] = {"run": {"method": run.method, "dataset": run.dataset}}
                resolve(catalogue, tables, (f"run.embedding_dim={run.embedding_dim}", *run.options))
            except ClocsError as problem:
                problem.args = (f"{run.method} on {run.dataset}: {problem}",)
                raise
        elif not run.untrained:
            raise SettingsError(f"The method {RANDOM!r} is an untrained encoder: name one with `encoder`.")
    for name in dict.fromkeys(one.downstream for preset in grid.presets for one in preset.conditions):
        catalogue.datasets.get(name)


def _offered(asked: Asked, catalogue: Catalogue) -> Iterator[Preset]:
    for preset in choose_presets(asked.grids, _axes(asked.axes), lambda name: catalogue.grids.get(name).offer):
        yield attrs.evolve(preset, conditions=tuple(_with_options(preset.conditions, asked.axes)))


def _own(asked: Asked) -> Preset:
    """Make the table of a user: all combinations of the axes, or the named cells with the axes that they leave open."""
    conditions: list[Condition] = []
    for name, own in (asked.cells or {"": {}}).items():
        values: Values = {"leads": ("",), "label_fraction": ("1",), **asked.axes, **own}
        for axis in ("method", "dataset"):
            if axis not in values and (axis, values.get("method")) != ("dataset", (RANDOM,)):
                raise SettingsError(f"{f'The cell {name!r}' if name else 'The grid'} needs an axis {axis!r}.")
        made = list(_with_options(_axes(values).grid(), values))
        several = len({(one.method, one.options) for one in made}) > 1
        named = (attrs.evolve(one, name=f"{name} {one.row}" if name and several else name) for one in made)
        conditions += [one for one in named if one not in conditions]
    contexts = list(dict.fromkeys(one.context for one in conditions))
    return Preset(
        name=_plain(asked.name),
        title=asked.title or asked.name,
        conditions=tuple(sorted(conditions, key=lambda one: contexts.index(one.context))),
    )


def _axes(values: Values) -> Axes:
    parts = values.get("part", ())
    if len(parts) > 1 or any(part not in ("validation", "test") for part in parts):
        raise SettingsError(f"The axis 'part' is validation or test, got {', '.join(parts)}.")
    return Axes(
        methods=tuple(_method(value) for value in values.get("method", ())),
        datasets=values.get("dataset", ()),
        downstream=values.get("downstream", ()),
        protocols=values.get("protocol", ()),
        leads=values.get("leads", ()),
        embedding_dims=_numbers(values, "embedding_dim", int),
        label_fractions=_numbers(values, "label_fraction", float),
        part=parts[0] if parts else None,
        exposures=values.get("exposure", ()),
    )


def _method(text: str) -> str:
    method, options = read_method(text)
    return ":".join([method, *(option.replace(",", "+") for option in options)])


def _with_options(conditions: Sequence[Condition], values: Values) -> Iterator[Condition]:
    """Combine conditions with every axis that is an option of the pre-training."""
    options = {name: some for name, some in values.items() if name not in (*_PLACES, *_REPEATED)}
    for one in conditions:
        combined: list[tuple[str, ...]] = [one.options]
        for name, some in options.items() if one.trains else ():
            combined = [(*before, f"{name}={value}") for before in combined for value in some]
        yield from (attrs.evolve(one, options=chosen) for chosen in combined)


def _numbers(values: Values, axis: str, kind: Callable[[str], Any]) -> tuple[Any, ...]:
    try:
        return tuple(kind(value) for value in values.get(axis, ()))
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise SettingsError(f"The axis {axis!r} takes {what}, got {', '.join(values[axis])}.") from None


def _cells(found: object, path: Path) -> Iterator[tuple[str, Values]]:
    if not isinstance(found, list):
        raise SettingsError(f"{path}: cells are tables, [[cells]], got {found!r}.")
    names: list[str] = []
    for cell in found:
        name = _text(cell.get("name", ""), f"{path}: the name of a cell") if isinstance(cell, dict) else ""
        if not name:
            raise SettingsError(f"{path}: every one of [[cells]] needs a `name`, got {cell!r:.80}.")
        if name in names:
            raise SettingsError(f"{path}: two of [[cells]] have the name {name!r}; give each its own.")
        names.append(name)
        values = _table({key: value for key, value in cell.items() if key != "name"}, f"{path}: cell {name!r}")
        wrong = next((axis for axis in _REPEATED if axis in values), None)
        if wrong:
            raise SettingsError(f"{path}: cell {name!r} sets {wrong!r}, which all cells share: put it under [axes].")
        yield name, values


def _table(found: object, where: str) -> Values:
    if not isinstance(found, dict):
        raise SettingsError(f"{where} is a table, got {found!r:.80}.")
    return {name: _items(value, f"{where} {name}") for name, value in found.items()}


def _items(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(_text(one, where) for one in value)
    return (_text(value, where),)


def _text(value: object, where: str) -> str:
    """Write a value as an option is typed. A list within an axis is one value, with commas."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(_text(one, where) for one in value)
    if not isinstance(value, (str, int, float)):
        raise SettingsError(f"{where} is a text, a number, or a list of them, got {value!r:.80}.")
    return str(value)


def _assigned(table: Values) -> tuple[str, ...]:
    return tuple(f"{name}={','.join(values)}" for name, values in table.items())


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name) or "grid"
