"""Check what a function of an offer returns. A message names the offer where it is something else than promised."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from clocs_core.errors import PluginError

if TYPE_CHECKING:
    from clocs_core.contracts.offers import Offer

T = TypeVar("T")


def returned(found: object, expected: type[T], offer: Offer, function: str) -> T:
    """Return what a function of an offer returned. Raises PluginError unless it is of the type that is promised.

    Without this, the error comes later and somewhere else, and looks like one of clocs.
    """
    if isinstance(found, expected):
        return found
    raise broken_promise(f"must return {_with_article(expected.__name__)}, got {_shown(found)}", offer, function)


def function_returned(found: object, offer: Offer, function: str) -> Callable[..., Any]:
    """Return the function that a function of an offer has built. Raises PluginError where it cannot be called."""
    if callable(found):
        return found
    raise broken_promise(f"must return a function, got {_shown(found)}", offer, function)


def broken_promise(fault: str, offer: Offer, function: str) -> PluginError:
    """Make the error for a function of an offer. fault: what it does wrong, such as "must return a float, got 3"."""
    return PluginError(
        f"`{function}` of the {offer.kind} {offer.name!r} {fault}. Its plugin has to be repaired; `clocs plugins test` "
        "checks all that it promises."
    )


def _shown(found: object) -> str:
    return "None" if found is None else f"{found!r:.60}"


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
