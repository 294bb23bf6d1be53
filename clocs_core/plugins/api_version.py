"""Check that a plugin fits this version of the hooks: the same major version, and no later minor version."""

from __future__ import annotations

import re

from clocs_core.contracts.hookspecs import API_VERSION

DECLARED = "CLOCS_API"  # name in a plugin's module that holds the version, such as "1.0"
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})", re.ASCII)


def shown(version: tuple[int, int] = API_VERSION) -> str:
    """Format a version: "1.0"."""
    return f"{version[0]}.{version[1]}"


def what_to_upgrade(declared: object, distribution: str) -> str:
    """Say why a plugin with this version does not fit, and what to upgrade; return "" where it fits.

    declared: the module's CLOCS_API. None, where the module has none, counts as fitting.
    """
    if declared is None:
        return ""
    found = _VERSION.fullmatch(declared) if isinstance(declared, str) else None
    if found is None:
        return f"its {DECLARED} is {declared!r} where a text such as {shown()!r} is expected: correct it"
    asked = (int(found[1]), int(found[2]))
    gap = f"it was written for version {shown(asked)} of the hooks and this clocs has {shown()}"
    if asked[0] < API_VERSION[0]:
        return f"{gap}: upgrade {distribution}"
    return f"{gap}: upgrade clocs" if asked > API_VERSION else ""
