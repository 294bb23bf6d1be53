"""A grid as it was asked for last: kept beside its results, so that a page can be made from the folder alone.

It says what is wanted. What is done is read from the folders of the jobs.
"""

from __future__ import annotations

from pathlib import Path

import attrs

from clocs_core.artifacts.documents import dump_record, read_object, read_text, structure_sealed
from clocs_core.errors import RunFolderError
from clocs_core.files import sweep, write_atomically
from clocs_core.grids.axes import Repeats
from clocs_core.grids.measure import Measure
from clocs_core.grids.presets import Preset

_FILE = "grid.json"


@attrs.frozen(kw_only=True)
class Grid:
    """Tables to fill, how often each of their cells is repeated, and the measure that is shown."""

    presets: tuple[Preset, ...]
    repeats: Repeats = attrs.field(factory=Repeats)
    measure: Measure = attrs.field(factory=Measure)


def save_grid(grid: Grid, out: Path) -> None:
    """Keep what was asked for in the folder of the grid."""
    out.mkdir(parents=True, exist_ok=True)
    sweep(out)
    write_atomically(out / _FILE, dump_record(grid))


def is_grid(out: Path) -> bool:
    """Tell whether a grid was run in this folder."""
    return (out / _FILE).exists()


def load_grid(out: Path) -> Grid:
    """Read what was asked for last. Raises RunFolderError where a folder is not that of a grid."""
    path = out / _FILE
    if not is_grid(out):
        raise RunFolderError(f"{out} is not the folder of a grid: it has no {_FILE}. `clocs grid run` makes one.")
    return structure_sealed(read_object(read_text(path), str(path)), Grid, str(path))
