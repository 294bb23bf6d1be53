"""Find which data sets are on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import attrs

from clocs_core.contracts.grids import Condition
from clocs_core.errors import DataNotFound
from clocs_core.grids.presets import Preset
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.places import data_root, dataset_folder


@attrs.frozen
class Shelf:
    """The data sets that are installed, and where their recordings would lie. roots: their own folders, by name."""

    catalogue: Catalogue
    above: Path
    roots: Mapping[str, str]

    def has(self, name: str) -> bool:
        """Whether recordings are there. Raises UnknownName for a data set that nothing installed offers."""
        dataset = self.catalogue.datasets.get(name).offer
        folder = Path(self.roots[name]) if name in self.roots else dataset_folder(self.above, name)
        return dataset.embedded or folder.is_file() or (folder.is_dir() and any(folder.iterdir()))

    def presets(self) -> dict[str, frozenset[str]]:
        """List the leads that each data set knows by a short name."""
        return {item.offer.name: frozenset(item.offer.presets) for item in self.catalogue.datasets}


def open_shelf(catalogue: Catalogue, above: str | None, roots: Mapping[str, str]) -> Shelf:
    """Open the data sets of this machine."""
    return Shelf(catalogue, data_root(above), roots)


def leave_out_absent(
    presets: Iterable[Preset], shelf: Shelf, is_known: Callable[[Condition, Preset], bool]
) -> tuple[tuple[Preset, ...], tuple[str, ...]]:
    """Remove the conditions whose data is not here. Returns the tables that are left, and the names of that data.

    is_known: whether a condition stays whatever lies here, as those do that were run elsewhere. Raises
    DataNotFound where nothing is left.
    """
    presets = tuple(presets)
    missing = {name for preset in presets for name in preset.datasets if not shelf.has(name)}
    kept, absent = [], dict[str, None]()
    for preset in presets:
        conditions = []
        for one in preset.conditions:
            lacks = [name for name in preset.reads(one) if name in missing]
            if lacks and not is_known(one, preset):
                absent |= dict.fromkeys(lacks)
            else:
                conditions.append(one)
        kept += [attrs.evolve(preset, conditions=tuple(conditions))] if conditions else []
    if not kept:
        names = ", ".join(absent)
        raise DataNotFound(
            f"Nothing can be run: {names} {'is' if len(absent) == 1 else 'are'} not on this machine. Get the data with "
            "`clocs data download NAME`, say where it is with `--root NAME=PATH`, or let another data set stand "
            f"in for it: {next(iter(absent))}=NAME among the data sets."
        )
    return tuple(kept), tuple(absent)
