"""A plugin written by `clocs plugins new`."""

from __future__ import annotations

from pathlib import Path

from clocs_core.cli import main

NAME = "clocs-plugin-scaffolded"
PACKAGE = "clocs_plugin_scaffolded"


def new(folder: Path, *arguments: str) -> int:
    """Write the plugin to a folder. Returns the exit code."""
    return main(["plugins", "new", NAME, "--out", str(folder), *arguments], [])
