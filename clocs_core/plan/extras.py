"""Choose the listeners and report sections of plugins, with their options. All that are installed are used.

Their options are always set with their name in front, as in `-o NAME.option=value`. Otherwise an option with the name
of a run's option would make that one ambiguous for everybody who installs the plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from clocs_core.contracts.offers import Offer
from clocs_core.contracts.result_offers import (
    ReportSection,
    Tracker,
)
from clocs_core.plan.data import Chosen
from clocs_core.plan.layers import Layers, overlaid
from clocs_core.plugins.catalogue import Catalogue, Offered
from clocs_core.settings.options import plain, structure
from clocs_core.settings.toml_file import Tables

Offers: TypeAlias = Mapping[str, Offered[Any]]


@attrs.frozen
class Extras:
    """The listeners and sections of a run or an evaluation, and the settings that change them."""

    trackers: tuple[Chosen[Tracker], ...] = ()
    sections: tuple[Chosen[ReportSection], ...] = ()
    tables: Tables = attrs.field(factory=dict)


def offered_extras(catalogue: Catalogue, taken: Mapping[str, object]) -> dict[str, Offered[Any]]:
    """Return all listeners and sections by the name of their table.

    A name that is taken, by a part of the run or by another of them, gets its distribution in front.
    """
    found: dict[str, Offered[Any]] = {}
    for item in (*catalogue.trackers, *catalogue.sections):
        name = item.offer.name
        found[f"{item.plugin.distribution}:{name}" if name in taken or name in found else name] = item
    return found


def choose_extras(offers: Offers, layers: Layers) -> Extras:
    """Read the options of listeners and sections from the layers."""
    chosen: list[Chosen[Any]] = []
    tables: Tables = {}
    for name, item in offers.items():
        cls = item.offer.options
        given = [one for one in layers.given if one.table == name]
        options = structure(cls, overlaid(cls, layers.tables.get(name, {}), given), name)
        chosen.append(Chosen(item.offer, options, item.owner))
        if options != cls():
            tables[name] = plain(options)
    return Extras(_of(chosen, Tracker), _of(chosen, ReportSection), tables)


def _of(chosen: list[Chosen[Any]], kind: type[Offer]) -> tuple[Chosen[Any], ...]:
    return tuple(one for one in chosen if isinstance(one.offer, kind))
