"""What plugins warn of while they work, for people: each once, and without a line of code."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clocs_core.errors import ClocsWarning

__all__ = ["hear_warnings"]


@contextmanager
def hear_warnings(warn: Callable[[str], None] | None = None) -> Iterator[list[str]]:
    """Show every ClocsWarning that comes up inside, each once, and keep them; other warnings go where they went.

    Without `warn` they are kept, and whoever listens outside shows them.
    """
    heard: list[str] = []
    before = warnings.showwarning

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, *more: object, **named: object
    ) -> None:
        known = issubclass(category, ClocsWarning)
        if known and str(message) in heard:
            return
        if known:
            heard.append(str(message))
        if known and warn is not None:
            warn(str(message))
        else:
            before(message, category, filename, lineno, *more, **named)  # type: ignore[arg-type]

    warnings.showwarning = show
    try:
        yield heard
    finally:
        warnings.showwarning = before
