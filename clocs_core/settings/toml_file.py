"""Read and write settings tables as TOML: settings.toml of a run, and the file of `clocs run --config`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from clocs_core.errors import SettingsError

Tables = dict[str, dict[str, object]]
"""The content of a settings file: the keys of each table, as plain values."""

SCHEMA = 1
"""Version of settings.toml and of the run folder. Increased when older ones can no longer be read."""


def read_tables(path: Path) -> Tables:
    """Read a settings file. Raises SettingsError for a file that is not there, not TOML or of another schema."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise SettingsError(f"Cannot read the settings file {path}: {problem.strerror}.") from None
    except RecursionError:
        raise SettingsError(f"{path} is not a settings file: its tables or lists are nested too deeply.") from None
    except ValueError as problem:  # no TOML, no UTF-8, or a number of thousands of digits
        raise SettingsError(f"{path} is not a TOML file: {problem}.") from None
    schema = document.pop("schema", SCHEMA)
    if type(schema) is not int or schema != SCHEMA:
        raise SettingsError(
            f"{path} has settings of schema {schema!r}; this version of clocs reads schema {SCHEMA}. "
            "Use the version that wrote it, or start a new run."
        )
    for key, value in document.items():
        if not isinstance(value, dict):
            raise SettingsError(f"{path}: {key!r} stands outside of a table; did you mean to put it under [run]?")
    return document


def dump_tables(tables: Mapping[str, Mapping[str, object]]) -> str:
    """Write tables as the text of a settings file, for `read_tables`."""
    import tomli_w

    return tomli_w.dumps({"schema": SCHEMA, **{name: dict(table) for name, table in tables.items()}})
