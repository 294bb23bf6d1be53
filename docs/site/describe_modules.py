"""Pages of the hooks, the offers, the rest of the public API and the testing kit."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType

from describe_objects import describe, describe_function
from markdown_text import as_markdown

import clocs_core
import clocs_core.testing
from clocs_core.contracts import hookspecs, offers

__all__ = ["api_page", "hooks_page", "offers_page", "testing_page"]

HOOKS = """# Hooks, signatures

Every hook in calling order, from `clocs_core/extend/hookspecs.py`. [The hooks](../hooks.md) has an example of each.
"""

OFFERS = """# Offers

What a plugin's hooks return, and the records in them: every field with its type and default. All of it is imported
from `clocs_core`. [The hooks](../hooks.md) has an example of each kind.
"""

API = """# Public API

What a plugin or a notebook imports from `clocs_core`. [Offers](offers.md) and [the testing kit](testing.md) have pages
of their own.
"""


def hooks_page() -> str:
    """Every hook: its signature and when it is called."""
    specs = [(name, spec) for name, spec in vars(hookspecs).items() if name.startswith("clocs_")]
    parts = [f"## `{name}`\n\n{describe_function(name, spec)}" for name, spec in specs]
    return "\n".join([HOOKS, *parts])


def offers_page() -> str:
    """Every offer and what it is made of."""
    return "\n".join([OFFERS, *_sections({offers: _by_module(_homes(clocs_core))[offers]})])


def api_page() -> str:
    """Every other public name, by the module that defines it, after a table of all."""
    homes = _homes(clocs_core)
    links = [f"[`{name}`]({_page(homes[name])}#{name.lower()})" for name in sorted(homes, key=str.lower)]
    groups = {module: names for module, names in _by_module(homes).items() if module is not offers}
    return "\n".join([API, ", ".join(links) + "\n", *_sections(groups)])


def testing_page() -> str:
    """The public names of `clocs_core.testing`."""
    kit = clocs_core.testing
    return "\n".join(["# Testing kit\n", as_markdown(kit.__doc__ or ""), *_sections(_by_module(_homes(kit)))])


def _sections(groups: Mapping[ModuleType, Iterable[str]]) -> Iterator[str]:
    """A section per module, with its names in the order of its source."""
    for module, names in groups.items():
        order = list(vars(module))
        yield f"## {_title(module)}\n"
        yield as_markdown((module.__doc__ or "").split("\n\n")[0])
        yield from (describe(name, getattr(module, name), module) for name in sorted(names, key=order.index))


def _homes(package: ModuleType) -> dict[str, ModuleType]:
    """The module that each public name of a package is imported from, or the package itself."""
    found = dict.fromkeys(package.__all__, package)
    for one in ast.walk(ast.parse(inspect.getsource(package))):  # also what is imported only when it is asked for
        if isinstance(one, ast.ImportFrom) and one.module is not None and one.module.startswith("clocs_core"):
            home = importlib.import_module(one.module)
            found |= {name.name: home for name in one.names if name.name in found}
    return found


def _by_module(homes: Mapping[str, ModuleType]) -> dict[ModuleType, list[str]]:
    modules = sorted(set(homes.values()), key=_title)
    return {module: [name for name in homes if homes[name] is module] for module in modules}


def _page(home: ModuleType) -> str:
    return "offers.md" if home is offers else ""


def _title(module: ModuleType) -> str:
    given = {clocs_core: "Version", offers: "Every offer and its fields"}
    name = module.__name__.rpartition(".")[2].replace("_", " ")
    return given.get(module, name[0].upper() + name[1:])
