"""Folders of runs that were begun: settings, and nothing else."""

from __future__ import annotations

from pathlib import Path

from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.settings.toml_file import Tables, seal_tables


def begin_folder(path: Path, tables: Tables) -> RunFolder:
    """Make a folder with these settings, as a run leaves it that is killed right after it began."""
    path.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(path)
    folder.settings.write_text(seal_tables(tables), encoding="utf-8")
    return folder
