"""Look up a method's parts and put them together, so that checks can use them as a run does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from clocs_core.contracts.batches import Views
from clocs_core.contracts.offers import (
    Encoder,
    Method,
    Needs,
    Objective,
    Offer,
    Perturb,
    Reader,
    SignalFacts,
    ViewGenerator,
)
from clocs_core.contracts.records import Column, Task
from clocs_core.contracts.setup import Setup
from clocs_core.errors import ClocsError
from clocs_core.plan.data import Chosen
from clocs_core.plan.parts import with_parts
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.options import structure
from clocs_core.testing.perturbations import LEADS
from clocs_core.testing.views import batch_for, channels_for
from clocs_core.train.build import draw_readers
from clocs_core.train.normalise import leave, min_max
from clocs_core.train.step import ViewMaker

SAMPLES = 1000
TASK = Task("rhythm", classes=("a", "b", "c"))


@attrs.frozen
class ViewSource:
    """A source of views: the needs of the method, the view maker and the names of the perturbations.

    encoder: builds the method's encoder from channels, samples and embedding_dim.
    readers: the architecture of each reader of the needs.
    columns: those that the objective needs, beside those of the views.
    """

    needs: Needs
    make: ViewMaker
    encoder: Callable[[int, int, int], nn.Module]
    signals: SignalFacts
    perturbations: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    readers: tuple[Chosen[Encoder], ...] = ()

    def encoders(self, channels: int, samples: int, embedding_dim: int, seed: int = 0) -> nn.ModuleList:
        """Build the encoders of a method, the same for the same seed. It seeds torch's default generator."""
        torch.default_generator.manual_seed(seed)
        if self.readers:
            return draw_readers(self.needs.readers, self.readers, (channels, samples), embedding_dim, seed)
        return nn.ModuleList(self.encoder(channels, samples, embedding_dim) for _ in range(self.needs.encoders))

    def views(self, samples: int, seed: int = 0) -> Views:
        """Make views of a synthetic batch, the same for the same seed."""
        batch = batch_for(self.needs, samples=samples, seed=seed, columns=self.columns)
        return self.make(batch, torch.Generator().manual_seed(seed))

    def setup(self, encoders: Iterable[nn.Module], embedding_dim: int) -> Setup:
        """Return what an objective is built from, for these encoders."""
        several = tuple(encoders)
        return Setup(
            encoder=several[0],
            encoders=several,
            embedding_dim=embedding_dim,
            task=TASK,
            perturbations=self.perturbations,
            signals=self.signals,
            columns=tuple(_with_classes(column) for column in (*self.needs.columns, *self.columns)),
            steps_per_epoch=10,
            steps=100,
            device=torch.device("cpu"),
        )


def _with_classes(column: Column) -> Column:
    """Return a column with two classes, as the values of synthetic batches have, where it is a category."""
    return attrs.evolve(column, classes=column.classes or ("a", "b")) if column.kind == "category" else column


def segments_source(columns: tuple[Column, ...] = ()) -> ViewSource:
    """Return a source of two plain segments and a small encoder, for a part that no method uses."""

    def generate(batch: Any, _: torch.Generator) -> Views:
        return Views(batch.signal.transpose(0, 1), batch)  # (view, batch, channel, sample)

    needs = Needs(segments=2)
    maker = ViewMaker(generate, (), normalise=leave)
    return ViewSource(needs, maker, SmallEncoder, signals_for(needs, SAMPLES), columns=columns)


def signals_for(needs: Needs, samples: int) -> SignalFacts:
    """Describe the signals of a synthetic batch that meets the needs."""
    count = channels_for(needs)
    channels = (*LEADS, *(f"lead {number}" for number in range(len(LEADS) + 1, count + 1)))[:count]
    axis = -2 if needs.encoder_channels == "all" else None
    return SignalFacts(unit="mV", frame_rate=500.0, samples=samples, channels=channels, channel_axis=axis)


class SmallEncoder(nn.Module):
    """A convolution, whose output is the sequence, and a linear layer on what is pooled of it."""

    def __init__(self, channels: int, _samples: int, embedding_dim: int) -> None:
        super().__init__()
        self.stride, self.width = 3, 8
        self.convolution = nn.Conv1d(channels, self.width, 7, stride=self.stride)
        self.pool, self.linear = nn.AdaptiveAvgPool1d(8), nn.Linear(8 * self.width, embedding_dim)

    def forward(self, signal: Tensor) -> Tensor:
        """Embed signals (n, channel, sample)."""
        z: Tensor = self.linear(self.pool(self.sequence(signal).transpose(1, 2)).flatten(1))  # (n, dim)
        return z

    def sequence(self, signal: Tensor) -> Tensor:
        """Return the features of the convolution (n, time, width)."""
        padded = nn.functional.pad(signal, (2, 2 + -signal.shape[-1] % self.stride))
        features: Tensor = self.convolution(padded).tanh()
        return features.transpose(1, 2)


def parts_of(method: Method, catalogue: Catalogue) -> dict[str, Offer]:
    """Return the offers that a method names, by settings table. Raise ClocsError if one is not installed."""
    parts: dict[str, Offer] = {
        "views": catalogue.views.get(method.views).offer,
        "encoder": catalogue.encoders.get(method.encoder).offer,
    }
    if method.loss is not None:
        parts["loss"] = catalogue.losses.get(method.loss).offer
    if method.objective is not None:
        parts["objective"] = with_parts(catalogue.objectives.get(method.objective).offer, catalogue)
    for reader in _needs_of(method, parts).readers:
        parts[table_of(reader)] = catalogue.encoders.get(reader.encoder or method.encoder).offer
    return parts | {name: catalogue.perturbations.get(name).offer for name in method.perturbations}


def table_of(reader: Reader) -> str:
    """Return the key of a reader's architecture among the parts of a method: its own, or that of the run's encoder."""
    return f"encoder of {reader.name}" if reader.encoder else "encoder"


def _needs_of(method: Method, parts: Mapping[str, Offer]) -> Needs:
    generator = parts["views"]
    assert isinstance(generator, ViewGenerator)  # each kind has its own shelf
    return generator.needs(options_of_part(method, "views", generator))


def options_of_part(method: Method, table: str, part: Offer) -> Any:
    """Return a part's options with the method's presets; the defaults if they do not fit, as another rule reports."""
    try:
        return structure(part.options, method.presets.get(table, {}), table)
    except ClocsError:
        return part.options()


def source_of(method: Method, parts: dict[str, Offer], samples: int = SAMPLES) -> ViewSource:
    """Return the source of the views that a method trains on, of frames of `samples`, with its encoder."""
    generator, encoder = parts["views"], parts["encoder"]
    assert isinstance(generator, ViewGenerator)  # each kind has its own shelf
    assert isinstance(encoder, Encoder)
    options = options_of_part(method, "views", generator)
    needs = _needs_of(method, parts)
    signals = signals_for(needs, samples)
    try:
        perturb = _perturbations(method, parts, signals)
    except ValueError:  # it may need leads by name: all twelve have one
        needs = attrs.evolve(needs, least_channels=len(LEADS))
        signals = signals_for(needs, samples)
        perturb = _perturbations(method, parts, signals)
    read = tuple(reader.channels for reader in needs.readers)
    maker = ViewMaker(generator.build(options), perturb, min_max, read)
    build = partial(encoder.build, options_of_part(method, "encoder", encoder))
    objective = parts.get("objective")
    columns = objective.columns if isinstance(objective, Objective) else ()
    chosen = tuple(choose_reader(method, parts, reader) for reader in needs.readers)
    return ViewSource(needs, maker, build, signals, method.perturbations, columns, chosen)


def _perturbations(method: Method, parts: Mapping[str, Offer], signals: SignalFacts) -> tuple[Perturb, ...]:
    """Build the perturbations of a method for these signals."""
    return tuple(
        parts[name].make(options_of_part(method, name, parts[name]), signals)  # type: ignore[attr-defined]
        for name in method.perturbations
    )


def choose_reader(method: Method, parts: Mapping[str, Offer], reader: Reader) -> Chosen[Encoder]:
    """Return the architecture of a reader with its options."""
    table = table_of(reader)
    encoder = parts[table]
    assert isinstance(encoder, Encoder)
    given = reader.options if reader.encoder else method.presets.get(table, {})
    return Chosen(encoder, structure(encoder.options, given, table))


def source_for(objective: Objective, catalogue: Catalogue | None) -> ViewSource:
    """Return the views and the encoder of the first method that uses an objective, or those of `segments_source`."""
    for method in [] if catalogue is None else [item.offer for item in catalogue.methods]:
        if method.objective == objective.name and catalogue is not None:
            try:
                return source_of(method, parts_of(method, catalogue))
            except ClocsError:  # the method's checks report it
                continue
    return segments_source(objective.columns)
