"""Rules for a plugin's module: importing it is quick and has no effect, so that `clocs --help` answers at once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import attrs

from clocs_core.plugins.api_version import DECLARED, shown, what_to_upgrade
from clocs_core.testing.checks import Check, expect, make_checks, rules_of
from clocs_core.testing.isolated import run_isolated
from clocs_core.testing.pace import Clock

HEAVY = ("torch", "scipy", "sklearn", "matplotlib", "tensorboard", "wfdb", "pandas", "triton")
BUDGET = 2.0  # s of processor time


def checks_of_plugins(
    modules: Iterable[ModuleType | str], budget: float = BUDGET, clock: Clock = time.process_time
) -> list[Check]:
    """Return the checks of plugins' modules, given as modules or by name. They share an interpreter until one fails.

    budget: seconds of processor time that an import may take, not counting that of clocs_core.
    clock: seconds, read in the importing process; pickle must be able to find it there by name.
    """
    names = [module if isinstance(module, str) else module.__name__ for module in modules]
    reports = _Reports(names, budget, clock)
    rules = rules_of(__name__)
    return [check for name in names for check in make_checks(f"plugin:{name}", rules, _Case(name, reports))]


@attrs.define
class _Reports:
    """Reports of what importing each module does, made once, on first use."""

    names: list[str]
    budget: float
    clock: Clock
    told: dict[str, dict[str, Any]] = attrs.field(factory=dict)

    def of(self, name: str) -> dict[str, Any]:
        while name not in self.told:  # each round reports one or more modules and ends with one that breaks a rule
            left = [one for one in self.names if one not in self.told]
            self.told |= run_isolated("imports", left, HEAVY, self.budget, self.clock)
        return self.told[name]


@attrs.frozen
class _Case:
    name: str
    reports: _Reports

    def report(self) -> dict[str, Any]:
        return self.reports.of(self.name)


def _imports(case: _Case) -> None:
    """The module can be imported in a fresh interpreter."""
    error = case.report()["error"]
    expect(not error, f"import {case.name} to work by itself", error, "Import what it needs, and install what it uses.")


def _light(case: _Case) -> None:
    """Importing it imports none of the heavy libraries."""
    heavy = case.report()["heavy"]
    advice = "Import these inside the functions that need them; types under `if TYPE_CHECKING:`."
    expect(not heavy, f"none of {', '.join(HEAVY)}", ", ".join(heavy), advice)


def _quick(case: _Case) -> None:
    """Importing it takes little processor time."""
    seconds, budget = case.report()["seconds"], case.reports.budget
    expect(seconds <= budget, f"at most {budget} s", f"{seconds:.2f} s", "Do the work when an offer is used.")


def _no_socket(case: _Case) -> None:
    """Importing it opens no socket."""
    sockets = case.report()["sockets"]
    expect(not sockets, "no use of the network", ", ".join(sockets), "Download only where the user asks for it.")


def _writes_nothing(case: _Case) -> None:
    """Importing it writes no file and makes no folder."""
    written = case.report()["written"]
    expect(not written, "nothing written", ", ".join(written), "Make folders when an offer is used.")


def _api(case: _Case) -> None:
    """CLOCS_API, if the module has it, is an API version that this clocs supports."""
    declared = case.report()["api"]
    problem = what_to_upgrade(declared, "the plugin")
    expect(not problem, f"{DECLARED} of at most {shown()!r}", repr(declared), f"As it is, {problem}.")
