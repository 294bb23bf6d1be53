"""Prepare frames of real recordings as a run does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clocs_core import Dataset, Listing
from clocs_core.data.preparation import prepare
from clocs_core.data.prepared import Prepared
from clocs_core.data.recipe import Recipe


def prepared_by(offer: Dataset, listing: Listing, options: Any, folder: Path) -> Prepared:
    """Prepare all frames of a listing, for methods that need one segment."""
    recipe = Recipe(
        dataset=offer.name,
        entries=listing.entries,
        load=offer.load,
        options=options,
        framing=offer.framing(1),
        revision=offer.revision,
        channels=offer.channels,
    )
    return prepare(recipe, folder, 1, lambda done, total: None)
