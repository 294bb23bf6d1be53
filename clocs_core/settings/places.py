"""Where data sets and prepared frames lie on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def dataset_folder(above: Path, name: str) -> Path:
    """The folder of a data set in the data root: its name, or that with `_` for `-` where only such a one is there."""
    folder, other = above / name, above / name.replace("-", "_")
    return other if other.is_dir() and not folder.is_dir() else folder


def data_root(given: str | Path | None) -> Path:
    """Where data lives: what was given, or CLOCS_DATA, or this platform's place for data of applications."""
    from platformdirs import user_data_path

    chosen = given or os.environ.get("CLOCS_DATA")
    return Path(chosen).expanduser() if chosen else user_data_path("clocs", appauthor=False)
