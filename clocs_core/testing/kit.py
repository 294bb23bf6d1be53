"""Make the checks of an offer or of a whole catalogue."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from clocs_core.contracts.grids import GridOffer
from clocs_core.contracts.offers import (
    Dataset,
    Encoder,
    Loss,
    Method,
    Objective,
    Offer,
    Perturbation,
    ViewGenerator,
)
from clocs_core.contracts.result_offers import (
    Metric,
    Protocol,
    ReportSection,
    Tracker,
)
from clocs_core.errors import ClocsError
from clocs_core.plan.parts import with_parts
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.testing.checks import Check, label_of, skipped
from clocs_core.testing.every_offer import checks_of_every_offer
from clocs_core.testing.grids import checks_of_grid
from clocs_core.testing.pace import Clock


def checks_of_catalogue(catalogue: Catalogue, roots: Mapping[str, Path] | None = None) -> list[Check]:
    """Return the checks of every offer. roots: folder of each data set's files, by its name."""
    roots = roots or {}
    return [
        check
        for shelf in catalogue.shelves()
        for item in shelf
        for check in checks_of(item.offer, root=roots.get(item.offer.name), catalogue=catalogue)
    ]


def checks_of(
    offer: Offer,
    *,
    root: Path | None = None,
    options: Any | None = None,
    catalogue: Catalogue | None = None,
    clock: Clock = time.process_time,
) -> list[Check]:
    """Return the checks of one offer, by its kind.

    root: folder of a data set's files. options: options to use instead of the defaults.
    catalogue: holds a method's parts, and a method that gives an objective its views and encoder; without it, an
    objective runs on two plain segments with a small encoder. clock: seconds, for the checks of processor time.
    """
    common = checks_of_every_offer(offer)
    if options is None:
        try:
            options = offer.options()
        except Exception:  # the plugin's class may raise anything; the check `options-default` reports it
            why = f"{offer.options.__name__}() cannot be made; pass options=…"
            return [*common, skipped(label_of(offer), "others", why)]
    return common + _by_kind(offer, root, options, catalogue, clock)


def _by_kind(offer: Offer, root: Path | None, options: Any, catalogue: Catalogue | None, clock: Clock) -> list[Check]:
    # Imported where they are used: most of these modules import torch, which tests of data sets do not need.
    match offer:
        case Dataset():
            from clocs_core.testing.datasets import checks_of_dataset

            return checks_of_dataset(offer, root, options, clock)
        case ViewGenerator():
            from clocs_core.testing.views import checks_of_views

            return checks_of_views(offer, options, clock)
        case Perturbation():
            from clocs_core.testing.perturbations import checks_of_perturbation

            return checks_of_perturbation(offer, options, clock)
        case Encoder():
            from clocs_core.testing.encoders import checks_of_encoder

            return checks_of_encoder(offer, options, clock)
        case Loss():
            from clocs_core.testing.losses import checks_of_loss

            return checks_of_loss(offer, options, clock)
        case Objective():
            from clocs_core.testing.assembly import source_for
            from clocs_core.testing.objectives import checks_of_objective

            if catalogue is not None:
                with suppress(ClocsError):  # a part that it builds on is missing: it cannot be built, which is reported
                    offer = with_parts(offer, catalogue)
            return checks_of_objective(offer, options, source_for(offer, catalogue), clock)
        case Method():
            from clocs_core.testing.methods import checks_of_method

            if catalogue is None:
                return [skipped(label_of(offer), "parts", "its parts are found in a catalogue; pass catalogue=…")]
            return checks_of_method(offer, catalogue)
        case Metric():
            from clocs_core.testing.metrics import checks_of_metric

            return checks_of_metric(offer, clock)
        case Protocol():
            from clocs_core.testing.protocols import checks_of_protocol

            return checks_of_protocol(offer, options, clock)
        case ReportSection():
            from clocs_core.testing.listeners import checks_of_section

            return checks_of_section(offer, options)
        case Tracker():
            from clocs_core.testing.listeners import checks_of_tracker

            return checks_of_tracker(offer, options)
        case GridOffer():
            return checks_of_grid(offer)
    return []
