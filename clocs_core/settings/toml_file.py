"""Read and write settings tables as TOML: settings.toml of a run, and the file of `clocs run --config`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from clocs_core.errors import SettingsError

Tables = dict[str, dict[str, object]]
"""The content of a settings file: the keys of each table, as plain values."""

SCHEMA = 1
"""Version of settings.toml and of the run folder. Increased when older ones can no longer be read."""

_SEALED = "sealed"  # a key of files that a run wrote: they end with a comment that has the digest of the rest
_SEAL = "# SHA-256 of the lines above: "


def read_tables(path: Path, edited: bool = True) -> Tables:
    """Read a settings file. Raises SettingsError for a file that is not there, not TOML or of another schema.

    edited: whether a person may have changed the file since a run wrote it. If not, its digest must match.
    """
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as problem:
        raise SettingsError(f"Cannot read the settings file {path}: {problem.strerror}.") from None
    except RecursionError:
        raise SettingsError(f"{path} is not a settings file: its tables or lists are nested too deeply.") from None
    except ValueError as problem:  # no TOML, no UTF-8, or a number of thousands of digits
        raise SettingsError(f"{path} is not a TOML file: {problem}.") from None
    sealed = document.pop(_SEALED, False)
    schema = document.pop("schema", SCHEMA)
    if type(schema) is not int or schema != SCHEMA:
        raise SettingsError(
            f"{path} has settings of schema {schema!r}; this version of clocs reads schema {SCHEMA}. "
            "Use the version that wrote it, or start a new run."
        )
    if not edited and not _is_whole(text, bool(sealed or not document)):
        raise SettingsError(
            f"{path} was damaged or edited since the run began: it does not match its digest. Put it back as it was, "
            "or start a new run with it: `config=...`."
        )
    for key, value in document.items():
        if not isinstance(value, dict):
            raise SettingsError(f"{path}: {key!r} stands outside of a table; did you mean to put it under [run]?")
    return document


def dump_tables(tables: Mapping[str, Mapping[str, object]]) -> str:
    """Write tables as the text of a settings file, for `read_tables`."""
    import tomli_w

    return tomli_w.dumps({"schema": SCHEMA, **{name: dict(table) for name, table in tables.items()}})


def seal_tables(tables: Mapping[str, Mapping[str, object]]) -> str:
    """Write tables as `dump_tables` does, with a digest at the end, for a file that nobody should edit."""
    first, _, rest = dump_tables(tables).partition("\n")
    text = f"{first}\n{_SEALED} = true\n{rest}"
    return f"{text}{_SEAL}{sha256(text.encode()).hexdigest()}\n"


def _is_whole(text: str, needs_seal: bool) -> bool:
    """Tell whether a file that a run wrote is unchanged, as far as can be told: earlier versions wrote no digest."""
    above, seal, digest = text.rpartition(_SEAL)
    return sha256(above.encode()).hexdigest() == digest.strip() if seal else not needs_seal
