"""What plugins warn of while they work, for people: each once, and without a line of code."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clocs_core.errors import ClocsWarning

__all__ = ["hear_warnings"]


@contextmanager
def hear_warnings(warn: Callable[[str], None]) -> Iterator[list[str]]:
    """Show every ClocsWarning that comes up inside, each once, and keep them; other warnings go where they went."""
    heard: list[str] = []
    before = warnings.showwarning

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, *more: object, **named: object
    ) -> None:
        if not issubclass(category, ClocsWarning):
            before(message, category, filename, lineno, *more, **named)  # type: ignore[arg-type]
        elif str(message) not in heard:
            heard.append(str(message))
            warn(str(message))

    warnings.showwarning = show
    try:
        yield heard
    finally:
        warnings.showwarning = before
