"""Prepare frames of real recordings as a run does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clocs_core import Dataset, Listing
from clocs_core.data.preparation import prepare
from clocs_core.data.prepared import Prepared


def prepared_by(offer: Dataset, listing: Listing, options: Any, folder: Path) -> Prepared:
    """Prepare all frames of a listing, for methods that need one segment."""
    return prepare(
        listing.entries,
        offer.load,
        options,
        offer.framing(1),
        dataset=offer.name,
        revision=offer.revision,
        channels=offer.channels,
        folder=folder,
        workers=1,
        progress=lambda done, total: None,
    )
