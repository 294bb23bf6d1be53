"""Rules for offered grids. An executor has no rules of its own: most need a cluster."""

from __future__ import annotations

from clocs_core.contracts.grids import Condition, GridOffer, Published
from clocs_core.testing.checks import Check, expect, label_of, make_checks


def checks_of_grid(offer: GridOffer) -> list[Check]:
    """Return the checks of a grid."""
    return make_checks(label_of(offer), (_lists, _publishes), offer)


def _lists(offer: GridOffer) -> None:
    """`conditions` lists Condition records, at least one, and none twice."""
    found = list(offer.conditions())
    other = next((one for one in found if not isinstance(one, Condition)), None)
    expect(other is None, "records of clocs_core.Condition", repr(other), "Return a list of them.")
    expect(bool(found), "at least one condition", "none", "A grid without conditions runs nothing.")
    twice = next((one for one in found if found.count(one) > 1), None)
    expect(twice is None, "every condition once", f"{twice} twice", "Leave out the second.")


def _publishes(offer: GridOffer) -> None:
    """`published` returns a Published score or None for every condition."""
    for one in offer.conditions():
        found = offer.published(one)
        right = found is None or isinstance(found, Published)
        expect(right, "a Published score, or None", repr(found), "Return None where nothing was published.")
