"""Turn what a message names into words of the command line: `batch_size=64` becomes `--batch-size 64`.

Core serves Python and the command line, so its messages name arguments and functions, in backticks, as Python writes
them. This is the one place that knows how the same is said on the command line: `pretrain` is `clocs run`, and
`pretrain(..., out='runs/a')`, which goes on with a run, is `clocs run --resume runs/a`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import click

_ARGUMENT = re.compile(r"`([a-z][a-z0-9_.]*[A-Z]?|[A-Z])(?:=([^`]*))?`")
_FUNCTION = re.compile(r"`(pretrain(?:_seeds)?|evaluate)(?:\(\.\.\., (\w+)=([^`]*)\))?`")
_COMMANDS = {"pretrain": "clocs run", "pretrain_seeds": "clocs run --seeds", "evaluate": "clocs evaluate"}
_CALLS = {"pretrain": "clocs run", "pretrain_seeds": "clocs run", "evaluate": "clocs evaluate RUN"}  # with an argument
_TABLES = ("run", "data", "train", "evaluate", "evaluation", "finetune")  # each has its flags in some command
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
    """Replace every argument in backticks by its flag, or by `-o` where it has none, and functions by commands."""

    def spell(found: re.Match[str]) -> str:
        table, _, field = found[1].rpartition(".")
        own = field if table in _TABLES and field in flags else found[1]  # flags belong to the tables of core
        name, value = _OTHER_NAMES.get(own, own), found[2]
        flag = f"--{name.replace('_', '-')}"
        if value is None:  # a word in backticks is an argument only if the command has it
            return f"`{flag}`" if name in flags else found[0]
        shown = _plain(value)
        if name not in flags:
            return f"`-o {found[1]}={shown}`"
        return f"`{flag}`" if value == "True" else f"`{flag} {shown}`"

    return _ARGUMENT.sub(spell, _FUNCTION.sub(_as_command, text))


def _as_command(found: re.Match[str]) -> str:
    """Return the command of a function, with the flag of its argument; `out` goes on with a run."""
    function, name, value = found.groups()
    if name is None:
        return f"`{_COMMANDS[function]}`"
    flag = "resume" if function != "evaluate" and name == "out" else name.replace("_", "-")
    return f"`{_CALLS[function]} --{flag} {_plain(value)}`"


def _plain(value: str) -> str:
    """Format a Python value as typed on a command line: no quotes, lists with commas, "…" for "..."."""
    inner = value[1:-1] if value[:1] in ("[", "(") else value
    return ",".join(part.strip().strip("'\"") for part in inner.split(",")).replace("...", "…")
