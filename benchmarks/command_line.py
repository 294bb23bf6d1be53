"""The command that made a result, as its file tells it: whoever reads it can type it, on any machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def command_line(script: str, arguments: Sequence[str] | None = None) -> str:
    """A script of this repository and its arguments, those of the process unless others are given."""
    given = sys.argv[1:] if arguments is None else arguments
    return shlex.join(["python", _shown(str(Path(script).resolve())), *map(_shown, given)])


def _shown(argument: str) -> str:
    """An absolute path as the repository has it, or by its name alone: the rest of it means nothing elsewhere."""
    option, equals, value = argument.rpartition("=")
    path = Path(value)
    if not path.is_absolute():
        return argument
    inside = path.is_relative_to(ROOT)
    return f"{option}{equals}{path.relative_to(ROOT).as_posix() if inside else path.name}"
