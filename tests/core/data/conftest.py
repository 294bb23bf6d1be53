"""What the tests of downloads share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of these tests are on this machine, which no proxy of the user's can reach."""
    monkeypatch.setenv("no_proxy", "*")
