"""Lists of what is installed."""

from __future__ import annotations

import clocs_core as clocs


def test_what_is_installed_is_listed() -> None:
    assert "cmsc" in clocs.methods()["name"]
    assert "demo" in clocs.datasets()["name"]
