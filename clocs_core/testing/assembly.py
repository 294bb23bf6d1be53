"""A method's parts, looked up and put together, so that checks can try them as a run would."""

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
    """Where views come from: what an instance is, how they are made, and what perturbs them."""

    needs: Needs
    make: ViewMaker
    perturbations: tuple[str, ...] = ()

    def views(self, samples: int) -> Views:
        """Views of a made-up batch, the same every time."""
        return self.make(batch_for(self.needs, samples=samples), torch.Generator().manual_seed(0))


def segments_source() -> ViewSource:
    """Two plain segments, for a part that no method uses."""

    def generate(batch: Any, _: torch.Generator) -> Views:
        return Views(batch.signal.transpose(0, 1), batch)  # (view, batch, channel, sample)

    return ViewSource(Needs(segments=2), ViewMaker(generate, (), normalise=False))


def parts_of(method: Method, catalogue: Catalogue) -> dict[str, Offer]:
    """The offers that a method names, by the name of their settings table. Raises where one is not installed."""
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
    """The options of a part with the method's presets, or the defaults where those do not fit: another rule's."""
    try:
        return structure(part.options, method.presets.get(table, {}), table)
    except ClocsError:
        return part.options()


def source_of(method: Method, parts: dict[str, Offer]) -> ViewSource:
    """The views that a method trains on."""
    generator = parts["views"]
    assert isinstance(generator, ViewGenerator)  # parts are on shelves of their own
    options = options_of_part(method, "views", generator)
    perturb = tuple(
        parts[name].build(options_of_part(method, name, parts[name]), "mV")  # type: ignore[attr-defined]
        for name in method.perturbations
    )
    maker = ViewMaker(generator.build(options), perturb, normalise=True)
    return ViewSource(generator.needs(options), maker, method.perturbations)


def source_for(objective: Objective, catalogue: Catalogue | None) -> ViewSource:
    """The views of the first method that uses an objective, or two plain segments."""
    for method in [] if catalogue is None else [item.offer for item in catalogue.methods]:
        if method.objective == objective.name and catalogue is not None:
            try:
                return source_of(method, parts_of(method, catalogue))
            except ClocsError:  # the method's own checks tell of it
                continue
    return segments_source()
