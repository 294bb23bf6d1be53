"""Flags that are short ways to write one line of a settings file: how they are declared, and what they become."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from clocs_core.errors import SettingsError, neighbours
from clocs_core.plan.data import inherit_data
from clocs_core.settings.options import field_types, from_text
from clocs_core.settings.sections import Tables

if TYPE_CHECKING:
    from clocs_core.plugins.catalogue import Catalogue

F = TypeVar("F", bound=Callable[..., Any])

Flags: TypeAlias = Mapping[str, tuple[str, str, str, str]]
"""By flag: table, key, metavar, help."""

_PATHS = ("FOLDER", "PATH", "FILE")  # metavars of values that are places


def with_flags(flags: Flags) -> Callable[[F], F]:
    """Declare flags on a command, in their order."""

    def add(command: F) -> F:
        for flag, (_, _, metavar, text) in reversed(list(flags.items())):
            command = click.option(flag, metavar=metavar, help=text)(command)
        return command

    return add


with_workers = click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="one per core",
    help="Processes that read recordings.",
)


def read_flags(
    catalogue: Catalogue,
    flags: Flags,
    given: Mapping[str, str],
    tables: Tables,
    classes: Mapping[str, type[Any]],
    dataset: object,
) -> Tables:
    """The tables with flags written over them. The text of a flag is read as the type of its setting.

    --data-root wins over a root that the tables have: see `inherit_data`.
    given: texts by the flags' Python names. classes: what reads each table; only the data set knows what its own is.
    """
    if "leads" in given and "channels" in given:
        raise SettingsError("--leads and --channels are two names for one setting; give one of them.")
    read: Tables = {}
    for flag, (table, key, metavar, _) in flags.items():
        text = given.get(flag.removeprefix("--").replace("-", "_"))
        if text is None:
            continue
        kinds = field_types(classes[table] if table in classes else _dataset_options(catalogue, dataset, flag))
        if key not in kinds:
            raise SettingsError(f"{flag}: data set {dataset!r} has no option {key!r}.{neighbours(key, kinds)}")
        value = from_text(kinds[key], text)
        if metavar in _PATHS and isinstance(value, str) and value != "none":
            value = str(Path(value).expanduser().absolute())  # the settings mean the same from another folder
        read.setdefault(table, {})[key] = value
    merged = {name: {**tables.get(name, {}), **read.get(name, {})} for name in (*tables, *read)}
    if "data" in merged:
        merged["data"] = inherit_data(tables.get("data", {}), read.get("data", {}))
    return merged


def _dataset_options(catalogue: Catalogue, name: object, flag: str) -> type[Any]:
    if not isinstance(name, str) or not name:
        raise SettingsError(f"{flag} is a setting of a data set: say which one with `--dataset NAME`.")
    return catalogue.datasets.get(name).offer.options
