"""List what is installed: methods and data sets."""

from __future__ import annotations

from clocs_core.api.tables import Table
from clocs_core.contracts.offers import Dataset, Method
from clocs_core.plugins.catalogue import Shelf
from clocs_core.plugins.session import installed_session


def methods() -> Table:
    """The methods that are installed: name, summary, and the plugin that offers each."""
    return _listed(installed_session().catalogue.methods)


def datasets() -> Table:
    """The data sets that are installed: name, summary, and the plugin that offers each."""
    return _listed(installed_session().catalogue.datasets)


def _listed(shelf: Shelf[Method] | Shelf[Dataset]) -> Table:
    rows = sorted((item.offer.name, item.offer.summary, item.plugin.name) for item in shelf)
    return Table(("name", "summary", "plugin"), tuple(rows))
