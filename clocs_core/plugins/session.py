"""The plugins of this process: every offer by name, and the host that calls their hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import EntryPoint

import attrs

from clocs_core.contracts.offers import Dataset
from clocs_core.plugins.catalogue import Catalogue, Offered, Shelf, build_catalogue
from clocs_core.plugins.host import Host, Plugin, installed_entry_points, load_plugins


@attrs.frozen(eq=False)
class Session:
    """The offers of all plugins, and the host that calls their hooks."""

    catalogue: Catalogue
    host: Host

    def with_dataset(self, dataset: Dataset, owner: Plugin) -> Session:
        """Return the session with one more data set, which wins over others of its name."""
        shelf = self.catalogue.datasets
        others = tuple(item for item in shelf.offered if item.offer.name != dataset.name)
        more = Shelf(shelf.kind, (Offered(dataset, owner), *others), shelf.broken)
        return attrs.evolve(self, catalogue=attrs.evolve(self.catalogue, datasets=more))


def open_session(
    entry_points: Iterable[EntryPoint] | None = None,
    without: Sequence[str] = (),
    trace: Callable[[str], None] | None = None,
) -> Session:
    """Load plugins and collect their offers. entry_points: default: those that are installed."""
    found = installed_entry_points() if entry_points is None else entry_points
    catalogue, host = build_catalogue(load_plugins(found, without, trace or None))
    return Session(catalogue, host)


@cache
def installed_session() -> Session:
    """Return the session of all installed plugins, opened once."""
    return open_session()
