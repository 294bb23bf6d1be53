"""Write the command that made a result so that it can be typed on any machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def command_line(script: str, arguments: Sequence[str] | None = None) -> str:
    """Join a script of this repository and its arguments; by default those of this process."""
    given = sys.argv[1:] if arguments is None else arguments
    return shlex.join(["python", _shown(str(Path(script).resolve())), *map(_shown, given)])


def _shown(argument: str) -> str:
    """Shorten an absolute path to its place in the repository, or to its name."""
    option, equals, value = argument.rpartition("=")
    path = Path(value)
    if not path.is_absolute():
        return argument
    inside = path.is_relative_to(ROOT)
    return f"{option}{equals}{path.relative_to(ROOT).as_posix() if inside else path.name}"
