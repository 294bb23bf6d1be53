"""Turn the arguments that a message names into the flags of the command: `batch_size=64` becomes `--batch-size 64`.

Core serves Python and the command line, so its messages name arguments, in backticks, as Python writes them. This is
the one place that knows how the same argument is given on the command line.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import click

_ARGUMENT = re.compile(r"`([a-z][a-z0-9_.]*)(?:=([^`]*))?`")
_OTHER_NAMES = {"method": "plugin"}  # arguments whose flag has another name


def flags_of(command: click.Command | None) -> frozenset[str]:
    """Return the options of a command by their Python names: "batch_size" for --batch-size."""
    found = command.params if command is not None else ()
    return frozenset(
        name.removeprefix("--").replace("-", "_")
        for option in found
        for name in (*option.opts, *option.secondary_opts)
        if name.startswith("--")
    )


def as_flags(text: str, flags: Collection[str]) -> str:
    """Replace every argument in backticks by its flag, or by `-o` where it has none."""

    def spell(found: re.Match[str]) -> str:
        name, value = _OTHER_NAMES.get(found[1], found[1]), found[2]
        flag = f"--{name.replace('_', '-')}"
        if value is None:  # a word in backticks is an argument only if the command has it
            return f"`{flag}`" if name in flags else found[0]
        shown = _plain(value)
        if name not in flags:
            return f"`-o {found[1]}={shown}`"
        return f"`{flag}`" if value == "True" else f"`{flag} {shown}`"

    return _ARGUMENT.sub(spell, text)


def _plain(value: str) -> str:
    """Format a Python value as typed on a command line: no quotes, lists with commas, "…" for "..."."""
    inner = value[1:-1] if value[:1] in ("[", "(") else value
    return ",".join(part.strip().strip("'\"") for part in inner.split(",")).replace("...", "…")
