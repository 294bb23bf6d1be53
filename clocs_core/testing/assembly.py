"""Look up a method's parts and put them together, so that checks can use them as a run does."""

from __future__ import annotations

from typing import Any

import attrs
import torch

from clocs_core.contracts.batches import Views
from clocs_core.contracts.offers import Method, Needs, Objective, Offer, ViewGenerator
from clocs_core.errors import ClocsError
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.options import structure
from clocs_core.testing.views import batch_for
from clocs_core.train.step import ViewMaker


@attrs.frozen
class ViewSource:
    """A source of views: the needs of the method, the view maker and the names of the perturbations."""

    needs: Needs
    make: ViewMaker
    perturbations: tuple[str, ...] = ()

    def views(self, samples: int) -> Views:
        """Make views of a synthetic batch, the same every time."""
        return self.make(batch_for(self.needs, samples=samples), torch.Generator().manual_seed(0))


def segments_source() -> ViewSource:
    """Return a source of two plain segments, for a part that no method uses."""

    def generate(batch: Any, _: torch.Generator) -> Views:
        return Views(batch.signal.transpose(0, 1), batch)  # (view, batch, channel, sample)

    return ViewSource(Needs(segments=2), ViewMaker(generate, (), normalise=False))


def parts_of(method: Method, catalogue: Catalogue) -> dict[str, Offer]:
    """Return the offers that a method names, by settings table. Raise ClocsError if one is not installed."""
    parts: dict[str, Offer] = {
        "views": catalogue.views.get(method.views).offer,
        "encoder": catalogue.encoders.get(method.encoder).offer,
    }
    if method.loss is not None:
        parts["loss"] = catalogue.losses.get(method.loss).offer
    if method.objective is not None:
        parts["objective"] = catalogue.objectives.get(method.objective).offer
    return parts | {name: catalogue.perturbations.get(name).offer for name in method.perturbations}


def options_of_part(method: Method, table: str, part: Offer) -> Any:
    """Return a part's options with the method's presets; the defaults if they do not fit, as another rule reports."""
    try:
        return structure(part.options, method.presets.get(table, {}), table)
    except ClocsError:
        return part.options()


def source_of(method: Method, parts: dict[str, Offer]) -> ViewSource:
    """Return the source of the views that a method trains on."""
    generator = parts["views"]
    assert isinstance(generator, ViewGenerator)  # each kind has its own shelf
    options = options_of_part(method, "views", generator)
    perturb = tuple(
        parts[name].build(options_of_part(method, name, parts[name]), "mV")  # type: ignore[attr-defined]
        for name in method.perturbations
    )
    maker = ViewMaker(generator.build(options), perturb, normalise=True)
    return ViewSource(generator.needs(options), maker, method.perturbations)


def source_for(objective: Objective, catalogue: Catalogue | None) -> ViewSource:
    """Return the views of the first method that uses an objective, or two plain segments."""
    for method in [] if catalogue is None else [item.offer for item in catalogue.methods]:
        if method.objective == objective.name and catalogue is not None:
            try:
                return source_of(method, parts_of(method, catalogue))
            except ClocsError:  # the method's checks report it
                continue
    return segments_source()
