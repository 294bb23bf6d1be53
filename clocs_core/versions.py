"""Look up the versions of installed packages, for whatever is kept beside a result."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache  # each look reads and parses a file: 1 ms
def version_of(distribution: str) -> str:
    """Return the version of an installed package, or "unknown" for one that is on the path but not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"
