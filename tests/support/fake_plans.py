"""Plans of the fake plugin, and the sentences with which a plan is refused."""

from __future__ import annotations

from typing import Any

import pytest
from fake_offers import offers
from fake_plugins import fake_point

from clocs_core.errors import ClocsError, SettingsError
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.catalogue import Catalogue, build_catalogue
from clocs_core.plugins.host import load_plugins


def catalogue_of(**more: Any) -> Catalogue:
    """The catalogue of the fake plugin, and of a second one with these hooks."""
    hooks: dict[str, Any] = offers()
    found: list[Any] = [fake_point("all", **hooks), fake_point("more", **more)]  # stand-ins for entry points
    catalogue, host = build_catalogue(load_plugins(found))
    assert host.broken == ()
    return catalogue


CATALOGUE = catalogue_of()


def planned(*assignments: str, method: str = "together", dataset: str = "tiny", **tables: dict[str, object]) -> Plan:
    run = {"method": method, "dataset": dataset, **tables.pop("run", {})}
    return resolve(CATALOGUE, {"run": run, **tables}, assignments)


def refused(*assignments: str, kind: type[ClocsError] = SettingsError, **tables: Any) -> str:
    with pytest.raises(kind) as caught:
        planned(*assignments, **tables)
    assert type(caught.value) is kind
    return str(caught.value)
