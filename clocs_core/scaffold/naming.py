"""Derive the names of a new plugin from one name: its distribution, its package and its offers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from keyword import iskeyword

import attrs

from clocs_core.errors import SettingsError, neighbours

_RUNS = (
    "dataset",
    "views",
    "perturbation",
    "encoder",
    "loss",
    "objective",
    "method",
    "metric",
    "protocol",
    "section",
)
OFFERS = (*_RUNS, "grid", "executor")
KINDS = (*OFFERS, "listener", "command")
DEFAULT_KINDS = ("dataset", "views", "perturbation", "encoder", "loss", "method")
PARTS = ("views", "encoder", "loss")  # parts of the method of a new plugin
LONGEST = 40  # characters: names are part of code lines of limited length
_DISTRIBUTION = re.compile(r"[a-z0-9]|[a-z0-9][a-z0-9._-]*[a-z0-9]", re.ASCII | re.IGNORECASE)


@attrs.frozen
class Names:
    """The names of a new plugin: "clocs-plugin-eeg" for pip, "clocs_plugin_eeg" for import, "eeg" for clocs."""

    distribution: str
    package: str
    plugin: str


def name_plugin(distribution: str) -> Names:
    """Derive the names from the distribution's. Raise SettingsError if it is not a valid name."""
    advice = "Use letters, digits and single '-', such as clocs-plugin-eeg."
    if not _DISTRIBUTION.fullmatch(distribution):
        raise SettingsError(f"{distribution!r} cannot be the name of a distribution. {advice}")
    if len(distribution) > LONGEST:
        raise SettingsError(f"{distribution!r} has {len(distribution)} characters, expected at most {LONGEST}.")
    package = re.sub(r"[-_.]+", "_", distribution).lower()
    if not package.isidentifier() or iskeyword(package):
        raise SettingsError(f"{distribution!r} would be imported as {package!r}, which Python cannot. {advice}")
    plugin = re.sub(r"^clocs_(plugins?_)?", "", package)
    if plugin in ("clocs", "clocs_core", "plugin", "plugins"):
        raise SettingsError(f"{distribution!r} says nothing of what the plugin is about. {advice}")
    return Names(distribution, package, plugin.replace("_", "-"))


def choose_kinds(asked: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds asked for, in the order of the hooks.

    A method adds the kinds of its parts; a grid adds a method and a data set to run.
    asked: names of kinds, also several in one text with commas; empty means the default kinds.
    """
    names = [name for text in asked for name in (part.strip() for part in text.split(",")) if name]
    for name in names:
        if name not in KINDS:
            raise SettingsError(f"A plugin has no kind of part {name!r}.{neighbours(name, KINDS)}")
    chosen = set(names) or set(DEFAULT_KINDS)
    if "grid" in chosen:
        chosen.update(("dataset", "method"))
    if "method" in chosen:
        chosen.update(PARTS)
    return tuple(kind for kind in KINDS if kind in chosen)
