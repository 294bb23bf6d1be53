"""Rules for methods: the parts that they name exist, their presets fit, and together they learn."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import torch
from torch import nn

from clocs_core.data.records import Framing, Task
from clocs_core.errors import ClocsError
from clocs_core.extend.catalogue import Catalogue
from clocs_core.extend.offers import Method, Offer
from clocs_core.options import structure
from clocs_core.settings import DataSettings, EvaluateSettings, TrainSettings
from clocs_core.testing.checks import Check, expect, label_of, make_checks
from clocs_core.testing.views import batch_for
from clocs_core.train.step import ContrastiveObjective, ViewMaker, encode

__all__ = ["checks_of_method", "options_of_part"]

DIM, SAMPLES = 16, 2500
TASK = Task("rhythm", classes=("a", "b", "c"))
CORE: dict[str, type[Any]] = {
    "data": DataSettings,
    "train": TrainSettings,
    "evaluate": EvaluateSettings,
    "pretrain_framing": Framing,
    "evaluate_framing": Framing,
}


@attrs.frozen
class _Case:
    offer: Method
    catalogue: Catalogue

    def parts(self) -> dict[str, Offer]:
        """The offers that the method names, by the name of their settings table."""
        shelves, method = self.catalogue, self.offer
        parts: dict[str, Offer] = {
            "views": shelves.views.get(method.views).offer,
            "encoder": shelves.encoders.get(method.encoder).offer,
        }
        if method.loss is not None:
            parts["loss"] = shelves.losses.get(method.loss).offer
        if method.objective is not None:
            parts["objective"] = shelves.objectives.get(method.objective).offer
        return parts | {name: shelves.perturbations.get(name).offer for name in method.perturbations}


def checks_of_method(offer: Method, catalogue: Catalogue) -> list[Check]:
    """The checks of a method whose parts are in `catalogue`."""
    return make_checks(label_of(offer), (_parts, _preset_tables, _presets, _one_step), _Case(offer, catalogue))


def options_of_part(method: Method, table: str, part: Offer) -> Any:
    """The options of a part with the method's presets."""
    return structure(part.options, method.presets.get(table, {}), table)


def _parts(case: _Case) -> None:
    """Every part that the method names is offered by a plugin that is installed."""
    try:
        case.parts()
    except ClocsError as problem:
        expect(
            False, "parts that are on offer", str(problem), "Name them as they are offered, and depend on their plugin."
        )


def _preset_tables(case: _Case) -> None:
    """Presets are for parts of this method, or for the settings of a run."""
    known = {*CORE, "views", "encoder", *case.offer.perturbations}
    known.add("objective" if case.offer.loss is None else "loss")
    odd = [name for name in case.offer.presets if name not in known]
    expect(not odd, f"presets for {', '.join(sorted(known))}", ", ".join(odd), "Nothing else would ever read them.")


def _presets(case: _Case) -> None:
    """The presets fit the options that they are for."""
    classes = CORE | {table: part.options for table, part in case.parts().items()}
    for table, values in case.offer.presets.items():
        if table in classes:
            try:
                structure(classes[table], values, table)
            except ClocsError as problem:
                expect(False, "presets that fit their options", str(problem), "Use names and types of the options.")


def _one_step(case: _Case) -> None:
    """The parts fit together: a batch becomes views, embeddings and a finite loss whose gradient reaches an encoder."""
    parts = case.parts()
    options = {table: _tolerant(case.offer, table, part) for table, part in parts.items()}
    needs = parts["views"].needs(options["views"])  # type: ignore[attr-defined]  # parts are on their own shelves
    batch = batch_for(needs, samples=SAMPLES)
    perturb = tuple(parts[name].build(options[name], "mV") for name in case.offer.perturbations)  # type: ignore[attr-defined]
    maker = ViewMaker(parts["views"].build(options["views"]), perturb, normalise=True)  # type: ignore[attr-defined]
    views = maker(batch, torch.Generator().manual_seed(0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        build = partial(parts["encoder"].build, options["encoder"])  # type: ignore[attr-defined]
        encoders = nn.ModuleList(build(views.signal.shape[2], SAMPLES, DIM) for _ in range(needs.encoders))
        objective = _objective(parts, options, encoders)
        loss = objective(partial(encode, list(encoders), views.encoder_of_view), views)
    expect(bool(loss.isfinite()), "a finite loss", loss.tolist(), "See which part makes it so; their own checks tell.")
    loss.backward()
    reached = any(one.grad is not None for one in encoders.parameters())
    expect(reached, "a gradient in the encoder", "none", "Let the loss depend on the embeddings of the views.")


def _objective(parts: dict[str, Any], options: dict[str, Any], encoders: nn.ModuleList) -> nn.Module:
    if "loss" in parts:
        return ContrastiveObjective(parts["loss"].build(options["loss"]))
    made: nn.Module = parts["objective"].build(options["objective"], encoders[0], DIM, TASK)
    return made


def _tolerant(method: Method, table: str, part: Offer) -> Any:
    """Options with the presets, or the defaults where those do not fit, which is another rule's business."""
    try:
        return options_of_part(method, table, part)
    except ClocsError:
        return part.options()
