"""Plugins without a distribution on disk: entry points, and modules without a file."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, cast

import attrs
from fake_offers import more_offers

from clocs_core import hookimpl


@attrs.frozen
class FakeDistribution:
    """The name and the version of a distribution."""

    name: str
    version: str


@attrs.frozen
class FakePoint:
    """What the host uses of an entry point: a name, a distribution, and `load`."""

    name: str
    found: Any
    distribution: str = "fakes"
    version: str = "1.0"

    @property
    def dist(self) -> FakeDistribution:
        return FakeDistribution(self.distribution, self.version)

    def load(self) -> Any:
        """Import the module, or fail the way the test wants it to."""
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found


def fake_module(name: str, **hooks: Callable[..., Any]) -> ModuleType:
    """A module whose functions are all marked as hooks."""
    module = ModuleType(name)
    for hook, function in hooks.items():
        setattr(module, hook, hookimpl(function))
    return module


def fake_point(name: str, distribution: str = "fakes", **hooks: Callable[..., Any]) -> FakePoint:
    """The entry point of a plugin with these hooks."""
    return FakePoint(name, fake_module(name, **hooks), distribution)


def no_offers() -> list[Any]:
    """A hook that offers nothing; `list` itself cannot be marked as a hook."""
    return []


def points(**more: Callable[..., Any]) -> list[EntryPoint]:
    """The entry point of one plugin with all fake offers; `more` are further hooks."""
    return [cast(EntryPoint, fake_point("fakes", **(more_offers() | more)))]
