"""Prepare fake recordings, here or in another process, and look at what was read and written."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fake_recordings import FakeOptions, fake_load

import clocs_core
from clocs_core.contracts.records import Entry, Framing
from clocs_core.data.preparation import prepare
from clocs_core.data.prepared import Prepared
from clocs_core.data.recipe import Recipe
from clocs_core.progress import Tick

FRAMING = Framing(frame_samples=8)


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


def stop_after_a_shard(done: int, total: int) -> None:
    """End the preparation where one shard of two is done."""
    if done == 64:
        raise RuntimeError("stop")


def make(
    folder: Path,
    entries: Sequence[Entry],
    options: FakeOptions | None = None,
    framing: Framing = FRAMING,
    workers: int = 1,
    progress: Tick = no_progress,
    **changes: Any,
) -> Prepared:
    """Prepare these recordings of a fake data set. changes: other fields of the recipe."""
    asked = {"dataset": "fake", "load": fake_load, "options": options or FakeOptions(), **changes}
    return prepare(Recipe(entries=entries, framing=framing, **asked), folder, workers, progress)


def names(log: Path) -> list[str]:
    """Return the recordings that were read, by a log of `fake_load`."""
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def folders(folder: Path) -> list[str]:
    """Return the names of the folders in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def start_process(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start Python on a program that can use `make` and the fake recordings."""
    head = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from fake_recordings import FakeOptions, fake_entries, fake_load
        from prepared_sets import FRAMING, make
        if __name__ == "__main__":
        """
    )
    text = head + textwrap.indent(textwrap.dedent(program), "    ")
    path = [str(Path(__file__).parent), str(Path(clocs_core.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_process(program: str, *arguments: object) -> tuple[str, str, int]:
    """Run Python on a program as above. Return what it printed, what it said of errors, and its exit code."""
    started = start_process(program, *arguments)
    out, err = started.communicate(timeout=60)
    return out, err, started.returncode
