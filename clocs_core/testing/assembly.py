"""Look up a method's parts and put them together, so that checks can use them as a run does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import torch
from torch import nn

from clocs_core.contracts.batches import Views
from clocs_core.contracts.offers import Encoder, Method, Needs, Objective, Offer, ViewGenerator
from clocs_core.errors import ClocsError
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.options import structure
from clocs_core.testing.views import batch_for
from clocs_core.train.normalise import leave, min_max
from clocs_core.train.step import ViewMaker


@attrs.frozen
class ViewSource:
    """A source of views: the needs of the method, the view maker and the names of the perturbations.

    encoder: builds the method's encoder from channels, samples and embedding_dim.
    """

    needs: Needs
    make: ViewMaker
    encoder: Callable[[int, int, int], nn.Module]
    perturbations: tuple[str, ...] = ()

    def views(self, samples: int, seed: int = 0) -> Views:
        """Make views of a synthetic batch, the same for the same seed."""
        return self.make(batch_for(self.needs, samples=samples, seed=seed), torch.Generator().manual_seed(seed))


def segments_source() -> ViewSource:
    """Return a source of two plain segments and a small encoder, for a part that no method uses."""

    def generate(batch: Any, _: torch.Generator) -> Views:
        return Views(batch.signal.transpose(0, 1), batch)  # (view, batch, channel, sample)

    return ViewSource(Needs(segments=2), ViewMaker(generate, (), normalise=leave), _small_encoder)


def _small_encoder(channels: int, _samples: int, embedding_dim: int) -> nn.Module:
    convolution = nn.Conv1d(channels, 8, 7, stride=3)
    return nn.Sequential(convolution, nn.Tanh(), nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(64, embedding_dim))


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
    """Return the source of the views that a method trains on, with its encoder."""
    generator, encoder = parts["views"], parts["encoder"]
    assert isinstance(generator, ViewGenerator)  # each kind has its own shelf
    assert isinstance(encoder, Encoder)
    options = options_of_part(method, "views", generator)
    perturb = tuple(
        parts[name].build(options_of_part(method, name, parts[name]), "mV")  # type: ignore[attr-defined]
        for name in method.perturbations
    )
    maker = ViewMaker(generator.build(options), perturb, normalise=min_max)
    build = partial(encoder.build, options_of_part(method, "encoder", encoder))
    return ViewSource(generator.needs(options), maker, build, method.perturbations)


def source_for(objective: Objective, catalogue: Catalogue | None) -> ViewSource:
    """Return the views and the encoder of the first method that uses an objective, or those of `segments_source`."""
    for method in [] if catalogue is None else [item.offer for item in catalogue.methods]:
        if method.objective == objective.name and catalogue is not None:
            try:
                return source_of(method, parts_of(method, catalogue))
            except ClocsError:  # the method's checks report it
                continue
    return segments_source()
