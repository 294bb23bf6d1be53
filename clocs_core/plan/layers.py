"""Combine layers of settings, and find the table of a setting that is given by name.

Later layers win: defaults < a method's presets < the data set's own defaults < an encoder's presets < a settings file <
settings given by name. A method that presets a learning rate keeps its presets of training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import attrs

from clocs_core.errors import PluginError, SettingsError, neighbours
from clocs_core.settings.options import field_types, from_text, from_value, structure
from clocs_core.settings.toml_file import Tables

T = TypeVar("T")


@attrs.frozen
class Assignment:
    """One setting given by name: its table (empty: the one that has the field), its field, and its value.

    is_text: the value was typed on a command line and is parsed as the type of its field.
    """

    table: str
    name: str
    value: object
    is_text: bool = True

    @property
    def path(self) -> str:
        """The name, with its table as a prefix if one was given."""
        return f"{self.table}.{self.name}" if self.table else self.name


@attrs.frozen
class Layers:
    """The sources of the values of a table; later ones win."""

    presets: Mapping[str, Mapping[str, object]]
    defaults: Tables
    tables: Tables
    given: Sequence[Assignment]

    def table(self, name: str, cls: type[Any]) -> Any:
        """Make the record of one table from all layers."""
        low = {**self.presets.get(name, {}), **self.defaults.get(name, {}), **self.tables.get(name, {})}
        mine = [one for one in self.given if one.table in ("", name) and one.name in field_types(cls)]
        values = overlaid(cls, low, mine)
        return structure_presets(cls, values, self.presets.get(name, {}), name)

    def checked(self, classes: Mapping[str, type[Any]], apart: Mapping[str, type[Any]] | None = None) -> Layers:
        """Return the layers with a table for each assignment. Raises SettingsError or PluginError where there is none.

        classes: the class that reads each table of this run. apart: tables whose options are set with the table's name
        in front only.
        """
        known = {**classes, **(apart or {})}
        for name, values in self.presets.items():
            if name not in classes:
                raise PluginError(
                    f"The method presets options of {name!r}, which is no part of it.{neighbours(name, classes)} "
                    "Its plugin must be put right."
                )
            for option in set(values) - set(field_types(classes[name])):
                raise PluginError(
                    f"The method presets the option {option!r} of {name!r}, which has no such option."
                    f"{neighbours(option, field_types(classes[name]))} Its plugin must be put right."
                )
        for name in self.tables:
            if name not in known:
                raise SettingsError(
                    f"The settings have a table [{name}] that this run has no use for.{neighbours(name, known)}"
                )
        given = [_at_its_table(one, known if one.table in (apart or {}) else classes) for one in self.given]
        return attrs.evolve(self, given=given)


def structure_presets(cls: type[T], values: Mapping[str, object], presets: Mapping[str, object], table: str) -> T:
    """Make the record of a table. Raises PluginError where the values that the method presets do not fit by themselves.

    values: of the table; presets: those of the method, which may be among them.
    """
    try:
        return structure(cls, values, table)
    except SettingsError as problem:
        used = {name: one for name, one in values.items() if name in presets and one is presets[name]}
        if used and not _fits(cls, used, table):
            raise PluginError(f"{problem} The method presets it, so its plugin must be put right.") from None
        raise


def _fits(cls: type[Any], values: Mapping[str, object], table: str) -> bool:
    try:
        structure(cls, values, table)
    except SettingsError:
        return False
    return True


def _at_its_table(one: Assignment, classes: Mapping[str, type[Any]]) -> Assignment:
    """Find the table of an assignment. Tables of the same class, the two framings, are set together."""
    holders = [name for name, cls in classes.items() if one.name in field_types(cls)]
    if one.table and one.table not in classes:
        raise SettingsError(f"`{one.path}=...`: this run has no part {one.table!r}.{neighbours(one.table, classes)}")
    if one.table and one.table not in holders:
        near = neighbours(one.name, field_types(classes[one.table]))
        raise SettingsError(f"`{one.path}=...`: {one.table!r} has no option {one.name!r}.{near}")
    if one.table:
        return one
    if not holders:
        near = neighbours(one.name, [field for cls in classes.values() for field in field_types(cls)])
        raise SettingsError(f"`{one.name}=...`: no part of this run has an option {one.name!r}.{near}")
    if "dataset" in holders:  # an option of the data set, such as its sampling rate, wins over a framing's
        holders = [name for name in holders if not name.endswith("framing")]
    if len({classes[name] for name in holders}) > 1:
        ways = " or ".join(f"`{name}.{one.name}=...`" for name in holders)
        raise SettingsError(f"`{one.name}=...` is ambiguous: write {ways}.")
    return attrs.evolve(one, table=holders[0]) if len(holders) == 1 else one


def split_assignment(text: str) -> Assignment:
    """Read "temperature=0.05" or "loss.temperature=0.05", as typed after `-o`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SettingsError(f"-o {text}: expected NAME=VALUE or PART.NAME=VALUE.")
    table, _, field = name.strip().rpartition(".")
    return Assignment(table, field, value.strip())


def as_assignments(given: Sequence[str | Assignment]) -> list[Assignment]:
    """Parse texts, as typed after `-o`; keep assignments as they are."""
    return [split_assignment(one) if isinstance(one, str) else one for one in given]


def name_settings(settings: Mapping[str, object]) -> list[Assignment]:
    """Turn Python values by name, such as {"epochs": 5, "loss.temperature": 0.1}, into assignments."""
    return [
        Assignment(path.rpartition(".")[0], path.rpartition(".")[2], value, is_text=False)
        for path, value in settings.items()
    ]


def overlaid(cls: type[Any], low: Mapping[str, object], given: Sequence[Assignment]) -> dict[str, object]:
    """Merge assignments into the values of a table, each read as the type of its field."""
    kinds = field_types(cls)
    mine = [one for one in given if one.name in kinds]
    return {**low, **{one.name: _read(kinds[one.name], one) for one in mine}}


def _read(kind: Any, one: Assignment) -> object:
    return from_text(kind, str(one.value)) if one.is_text else from_value(kind, one.value)
