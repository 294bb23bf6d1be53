"""From layers of settings to records: which value wins, and which table an `-o` belongs to.

Later layers win: defaults < a method's presets < the data set's defaults < a settings file and flags < `-o`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from clocs_core.errors import PluginError, SettingsError, neighbours
from clocs_core.settings.options import field_types, from_text, structure
from clocs_core.settings.sections import Tables


@attrs.frozen
class Assignment:
    """One `-o`: the part it names, if it names one, the field and the text."""

    table: str
    name: str
    text: str


@attrs.frozen
class Layers:
    """Where the values of a table come from, lowest first."""

    presets: Mapping[str, Mapping[str, object]]
    defaults: Tables
    tables: Tables
    given: Sequence[Assignment]

    def table(self, name: str, cls: type[Any]) -> Any:
        """The record of one table, every layer in its place."""
        low = {**self.presets.get(name, {}), **self.defaults.get(name, {}), **self.tables.get(name, {})}
        mine = [one for one in self.given if one.table in ("", name) and one.name in field_types(cls)]
        return structure(cls, overlaid(cls, low, mine), name)

    def refuse_unknown(self, classes: Mapping[str, type[Any]]) -> None:
        """Every table of the file and every assignment must belong to exactly one class of this run."""
        for name in self.presets:
            if name not in classes:
                raise PluginError(
                    f"The method presets options of {name!r}, which is no part of it.{neighbours(name, classes)} "
                    "Its plugin must be put right."
                )
        for name in self.tables:
            if name not in classes:
                raise SettingsError(
                    f"The settings have a table [{name}] that this run has no use for.{neighbours(name, classes)}"
                )
        for one in self.given:
            holders = [name for name, cls in classes.items() if one.name in field_types(cls)]
            if one.table and one.table not in classes:
                raise SettingsError(
                    f"-o {one.table}.{one.name}: this run has no part {one.table!r}.{neighbours(one.table, classes)}"
                )
            if one.table and one.table not in holders:
                raise SettingsError(
                    f"-o {one.table}.{one.name}: {one.table!r} has no option {one.name!r}."
                    f"{neighbours(one.name, field_types(classes[one.table]))}"
                )
            if not holders:
                known = [field for cls in classes.values() for field in field_types(cls)]
                raise SettingsError(
                    f"-o {one.name}: no part of this run has an option {one.name!r}.{neighbours(one.name, known)}"
                )
            # Tables of one class, such as the two framings, are set together.
            if not one.table and len({classes[name] for name in holders}) > 1:
                ways = " or ".join(f"-o {name}.{one.name}=…" for name in holders)
                raise SettingsError(f"-o {one.name} is ambiguous: write {ways}.")


def split_assignment(text: str) -> Assignment:
    """Read "temperature=0.05" or "loss.temperature=0.05"."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SettingsError(f"-o {text}: expected NAME=VALUE or PART.NAME=VALUE.")
    table, _, field = name.strip().rpartition(".")
    return Assignment(table, field, value.strip())


def overlaid(cls: type[Any], low: Mapping[str, object], given: Sequence[Assignment]) -> dict[str, object]:
    """The values of a table with assignments written over them, each read as the type of its field."""
    kinds = field_types(cls)
    return {**low, **{one.name: from_text(kinds[one.name], one.text) for one in given if one.name in kinds}}
