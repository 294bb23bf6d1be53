"""Rules for methods: their parts exist, their presets fit, and the parts train together."""

from __future__ import annotations

import unittest
from typing import Any

import attrs
import torch
from torch import nn

from clocs_core.contracts.offers import Method, Offer, Presets
from clocs_core.contracts.records import Framing
from clocs_core.contracts.setup import Setup
from clocs_core.errors import ClocsError
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.options import structure
from clocs_core.settings.sections import DataSettings, RunSettings, ScoringSettings, TrainSettings
from clocs_core.testing.assembly import options_of_part, parts_of, source_of
from clocs_core.testing.checks import Check, expect, label_of, make_checks, rules_of
from clocs_core.train.step import ContrastiveObjective, Encoding, loss_of

DIM, SAMPLES = 16, 2500
CORE: dict[str, type[Any]] = {
    "run": RunSettings,
    "data": DataSettings,
    "train": TrainSettings,
    "evaluate": ScoringSettings,
    "pretrain_framing": Framing,
    "evaluate_framing": Framing,
}


@attrs.frozen
class _Case:
    offer: Method
    catalogue: Catalogue

    def parts(self) -> dict[str, Offer]:
        try:
            return parts_of(self.offer, self.catalogue)
        except ClocsError as problem:  # the rule `parts` reports it
            raise unittest.SkipTest(f"a part is missing: {problem}") from None

    def presets(self) -> list[tuple[str, Presets]]:
        """List all presets, each with the place that declares them."""
        ours = [("presets", self.offer.presets)]
        ours += [(f"variant {name}", variant.presets) for name, variant in self.offer.variants.items()]
        return ours + [(f"presets on {name}", presets) for name, presets in self.offer.on_dataset.items()]


def checks_of_method(offer: Method, catalogue: Catalogue) -> list[Check]:
    """Return the checks of a method whose parts are in `catalogue`."""
    return make_checks(label_of(offer), rules_of(__name__), _Case(offer, catalogue))


def _parts(case: _Case) -> None:
    """An installed plugin offers every part that the method names."""
    try:
        parts_of(case.offer, case.catalogue)
    except ClocsError as problem:
        expect(False, "parts that are on offer", str(problem), "Use the offers' names, and depend on their plugin.")


def _preset_tables(case: _Case) -> None:
    """Presets belong to parts of this method or to settings of a run."""
    known = {*CORE, "views", "encoder", *case.offer.perturbations}
    known.add("objective" if case.offer.loss is None else "loss")
    odd = [f"{name} ({where})" for where, presets in case.presets() for name in presets if name not in known]
    expect(not odd, f"presets for {', '.join(sorted(known))}", ", ".join(odd), "Nothing reads these; remove them.")


def _presets(case: _Case) -> None:
    """The presets fit the options that they set."""
    classes = CORE | {table: part.options for table, part in case.parts().items()}
    for where, table, values in ((where, *item) for where, presets in case.presets() for item in presets.items()):
        if table in classes:
            try:
                structure(classes[table], values, table)
            except ClocsError as problem:
                found = f"{where}: {problem}"
                expect(False, "presets that fit their options", found, "Use names and types of the options.")


def _one_step(case: _Case) -> None:
    """The parts fit together: a batch gives views, embeddings and a finite loss whose gradient reaches an encoder."""
    parts = case.parts()
    source = source_of(case.offer, parts, SAMPLES)
    views = source.views(SAMPLES)
    with torch.random.fork_rng(devices=[]):
        channels = views.signal.shape[2]
        encoders = source.encoders(channels, SAMPLES, DIM)
        objective = _objective(case.offer, parts, source.setup(encoders, DIM))
        encode = Encoding(list(encoders), views.encoder_of_view)
        loss, _ = loss_of(objective, encode, views, torch.Generator().manual_seed(0))
    expect(bool(loss.isfinite()), "a finite loss", loss.tolist(), "Find the part that causes it; its checks report it.")
    loss.backward()
    reached = any(one.grad is not None for one in encoders.parameters())
    expect(reached, "a gradient in the encoder", "none", "Let the loss depend on the embeddings of the views.")


def _objective(method: Method, parts: dict[str, Any], setup: Setup) -> nn.Module:
    if "loss" in parts:
        return ContrastiveObjective(parts["loss"].build(options_of_part(method, "loss", parts["loss"])))
    made: nn.Module = parts["objective"].build(options_of_part(method, "objective", parts["objective"]), setup)
    return made
