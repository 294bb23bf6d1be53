"""Everything that is installed keeps the promises that are asked of anybody's plugin."""

from __future__ import annotations

import pytest
from conftest import TEST_DATA

from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import installed_entry_points, load_plugins
from clocs_core.testing import Check, checks_of_catalogue, checks_of_plugins

CATALOGUE, HOST = build_catalogue(load_plugins(installed_entry_points()))
# Folders that are not there leave the checks of declarations, and a skip that says so.
ROOTS = {
    item.offer.name: TEST_DATA / item.offer.name
    for item in CATALOGUE.datasets
    if (TEST_DATA / item.offer.name).exists()
}
CHECKS = [*checks_of_catalogue(CATALOGUE, ROOTS), *checks_of_plugins(plugin.module for plugin in HOST.plugins)]


def test_no_plugin_is_broken():
    """A plugin that is set aside offers nothing, so none of its checks would be made."""
    assert HOST.broken == ()


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_what_is_installed_keeps_its_promises(check: Check):
    check.run()
