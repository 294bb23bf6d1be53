"""Every offer of every plugin, by kind and name, with its owner. This is the only lookup of offers by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import attrs

from clocs_core.contracts.grids import GridOffer
from clocs_core.contracts.hookspecs import PROJECT
from clocs_core.contracts.jobs import ExecutorOffer
from clocs_core.contracts.offers import (
    Dataset,
    Encoder,
    Loss,
    Method,
    Objective,
    Offer,
    Perturbation,
    ViewGenerator,
)
from clocs_core.contracts.result_offers import (
    Metric,
    Protocol,
    ReportSection,
    Tracker,
)
from clocs_core.errors import AmbiguousName, PluginError, UnknownName, neighbours
from clocs_core.plugins.host import OFFER_HOOKS, Broken, Host, Plugin, first_line
from clocs_core.plugins.printing import printing_to_stderr
from clocs_core.settings.options import field_types

O = TypeVar("O", bound=Offer)  # noqa: E741  O for offer


@attrs.frozen
class Offered(Generic[O]):
    """An offer and the plugin that made it."""

    offer: O
    plugin: Plugin

    @property
    def owner(self) -> str:
        """The plugin with its distribution, for messages."""
        return f"plugin {self.plugin.name!r} ({self.plugin.distribution} {self.plugin.version})"


@attrs.frozen
class Shelf(Generic[O]):
    """All offers of one kind."""

    kind: type[O]
    offered: tuple[Offered[O], ...]
    broken: tuple[Broken, ...] = ()

    def __iter__(self) -> Iterator[Offered[O]]:
        return iter(self.offered)

    def names(self) -> list[str]:
        """Return the names on this shelf, sorted, without repetition."""
        return sorted({item.offer.name for item in self.offered})

    def get(self, name: str) -> Offered[O]:
        """Return the offer of this name. Raises UnknownName with similar names, or AmbiguousName with all owners.

        name: "distribution:name" or "plugin:name" chooses among several. Without it, a built-in offer keeps its name.
        """
        owner, _, plain = name.rpartition(":")
        named = [item for item in self.offered if item.offer.name == plain]
        found = [item for item in named if owner in ("", item.plugin.distribution, item.plugin.name)]
        built_in = [item for item in found if item.plugin.distribution == PROJECT]
        if len(found) == 1 or len(built_in) == 1:
            return (found if len(found) == 1 else built_in)[0]
        kind = self.kind.kind
        if found:
            raise AmbiguousName(self._conflict(found))
        problems = "".join(f" {one.problem}" for one in self.broken)
        owned = sorted(item.offer.name for item in self.offered if item.plugin.name == name)
        hint = f" {name!r} is a plugin; it offers {', '.join(owned)}." if owned else neighbours(name, self.names())
        raise UnknownName(f"No {kind} {name!r}.{hint} `clocs plugins` lists what is installed.{problems}")

    def conflicts(self) -> list[str]:
        """Describe every name that more than one plugin offers, a sentence each."""
        by_name = [[item for item in self.offered if item.offer.name == name] for name in self.names()]
        return [self._conflict(found) for found in by_name if len(found) > 1]

    def _conflict(self, found: list[Offered[O]]) -> str:
        owners = " and ".join(f"{i.plugin.name!r} ({i.plugin.distribution} {i.plugin.version})" for i in found)
        ways = " or ".join(f"`--without {item.plugin.name}`" for item in reversed(found))
        name, apart = found[0].offer.name, len({item.plugin.distribution for item in found}) == len(found)
        whole = " or ".join(f"'{i.plugin.distribution if apart else i.plugin.name}:{name}'" for i in found)
        kept = (
            f" {name!r} alone is that of clocs." if [i.plugin.distribution for i in found].count(PROJECT) == 1 else ""
        )
        return (
            f"{len(found)} plugins offer the {self.kind.kind} {name!r}: {owners}.{kept} "
            f"Ask for {whole}, or leave one out with {ways}."
        )


@attrs.frozen
class Catalogue:
    """One shelf for each kind of offer."""

    datasets: Shelf[Dataset]
    views: Shelf[ViewGenerator]
    perturbations: Shelf[Perturbation]
    encoders: Shelf[Encoder]
    losses: Shelf[Loss]
    objectives: Shelf[Objective]
    methods: Shelf[Method]
    metrics: Shelf[Metric]
    protocols: Shelf[Protocol] = Shelf(Protocol, ())
    sections: Shelf[ReportSection] = Shelf(ReportSection, ())
    trackers: Shelf[Tracker] = Shelf(Tracker, ())
    grids: Shelf[GridOffer] = Shelf(GridOffer, ())
    executors: Shelf[ExecutorOffer] = Shelf(ExecutorOffer, ())

    def shelves(self) -> tuple[Shelf[Offer], ...]:
        """Return all shelves, in the order in which the hooks are called."""
        return tuple(getattr(self, field.name) for field in attrs.fields(type(self)))


_KINDS: tuple[type[Offer], ...] = (
    Dataset,
    ViewGenerator,
    Perturbation,
    Encoder,
    Loss,
    Objective,
    Method,
    Metric,
    Protocol,
    ReportSection,
    Tracker,
    GridOffer,
    ExecutorOffer,
)


def build_catalogue(host: Host) -> tuple[Catalogue, Host]:
    """Ask every plugin for its offers. Set a plugin aside as a whole if it fails or returns anything else.

    Returns the catalogue, and the host without the plugins that were set aside.
    """
    made: dict[Plugin, dict[type[Offer], list[Offer]]] = {}
    for plugin in host.plugins:
        try:
            with printing_to_stderr():  # what a plugin prints must not stand in the JSON of a command
                made[plugin], remarks = _offers_of(host, plugin)
            host = attrs.evolve(host, remarks=(*host.remarks, *remarks))
        except (Exception, SystemExit) as problem:  # code of plugins may raise anything
            host = host.set_aside(
                plugin,
                f"Plugin {plugin.name!r} ({plugin.distribution} {plugin.version}) could not make its offers: "
                f"{first_line(problem)} Repair or uninstall {plugin.distribution}, or silence this "
                f"with `--without {plugin.name}`.",
            )
    shelves = [
        Shelf(kind, tuple(Offered(o, p) for p, offers in made.items() for o in offers[kind]), host.broken)
        for kind in _KINDS
    ]
    return Catalogue(*shelves), host  # type: ignore[arg-type]  # the list is in the order of the fields


def _offers_of(host: Host, plugin: Plugin) -> tuple[dict[type[Offer], list[Offer]], list[str]]:
    """Return the offers of a plugin by kind, and remarks on hooks that returned nothing."""
    offers: dict[type[Offer], list[Offer]] = {kind: [] for kind in _KINDS}
    remarks = []
    for hook, kind in zip(OFFER_HOOKS, _KINDS, strict=True):
        results = _results_of(host, plugin, hook)
        if len(results) < host.implementations(plugin, hook):
            remarks.append(
                f"{hook} of plugin {plugin.name!r} ({plugin.distribution} {plugin.version}) returns None, so it offers "
                f"nothing. Does it lack a `return`? If there is nothing to offer, it should return []."
            )
        for result in results:
            for offer in result:
                if not isinstance(offer, kind):
                    raise TypeError(f"{hook} must return a list of {kind.__name__}, got {offer!r}")
                if any(offer.name == other.name for other in offers[kind]):
                    raise ValueError(f"{hook} offers {offer.name!r} twice")
                field_types(offer.options)  # fails here, so that an unresolved type is reported with its plugin
                offers[kind].append(offer)
    return offers, remarks


def _results_of(host: Host, plugin: Plugin, hook: str) -> list[list[object]]:
    try:
        return [_as_items(result) for result in host.call(plugin, hook)]
    except (Exception, SystemExit) as problem:  # code of plugins may raise anything
        raise PluginError(f"{hook} raised {first_line(problem)}") from problem


def _as_items(result: object) -> list[object]:
    return list(result) if isinstance(result, Iterable) and not isinstance(result, (str, dict)) else [result]
