"""Find the folders of data sets and prepared frames on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def dataset_folder(above: Path, name: str) -> Path:
    """Return the folder of a data set in the data root: its name, or with `_` for `-` if only that folder exists."""
    folder, other = above / name, above / name.replace("-", "_")
    return other if other.is_dir() and not folder.is_dir() else folder


def data_root(given: str | Path | None) -> Path:
    """Return the data root: `given`, else CLOCS_DATA, else this platform's folder for application data."""
    from platformdirs import user_data_path

    chosen = given or os.environ.get("CLOCS_DATA")
    return Path(chosen).expanduser() if chosen else user_data_path("clocs", appauthor=False)
