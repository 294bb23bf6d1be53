"""Run commands as typed, in this process: importing torch for each would take most of their time."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest


def clocs(place: Path, *arguments: object) -> None:
    """Run `clocs` in the folder `place`."""
    (program,) = entry_points(group="console_scripts", name="clocs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        words = [str(one) for one in arguments]
        assert program.load()(words) == 0, f"clocs {' '.join(words)}"
