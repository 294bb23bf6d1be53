"""Compare the loss and gradients of every implementation of a method with those of the plain step.

The plain step uses the first choice of every option whose choices are equivalent. The others are: each other choice,
one at a time; the captured step; GradCache, which encodes a contrast a batch at a time. All get the same synthetic
signals and weights. Dropout is off, because each implementation draws its numbers differently. In float32, rounding can
change which sample is the maximum of its pool, and its gradient then goes elsewhere. So on a CPU everything is in
float64. GPU kernels support float32 only, so there each implementation runs on three sets of signals and weights, and
the one with the middle error counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import attrs
import torch
from torch import Tensor, nn

from clocs_core.contracts.offers import Encoder, Method, Needs, Objective, Offer
from clocs_core.data.store import Instances, Store
from clocs_core.errors import Unavailable
from clocs_core.plan.data import Chosen
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.options import equivalents
from clocs_core.settings.sections import TrainSettings
from clocs_core.testing.assembly import choose_reader, options_of_part, parts_of, source_of, table_of
from clocs_core.testing.synthetic import synthetic_batch
from clocs_core.testing.views import about_for, channels_for
from clocs_core.train.build import draw_readers
from clocs_core.train.captured import CapturedEpochs
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.gradcache import Known, contrast_step, join_views, without_signal
from clocs_core.train.learner import Learner, start
from clocs_core.train.step import ContrastiveObjective, Encoding, encode, loss_of

LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-4, 2e-3  # relative; reached by a fused loss with half-precision operands
SEEDS = {"cpu": (1,), "cuda": (1, 2, 3)}


@attrs.frozen
class Agreement:
    """One implementation of a step: its loss, and the relative errors of loss and gradients against the plain step.

    skipped: why it could not run here; then there are no numbers. problem: message of the exception it raised.
    """

    way: str
    loss: float = float("nan")
    loss_error: float = float("nan")
    gradient_error: float = float("nan")
    skipped: str = ""
    problem: str = ""

    @property
    def holds(self) -> bool:
        """Whether it agrees or was skipped."""
        return bool(self.skipped) or (
            not self.problem and self.loss_error <= LOSS_TOLERANCE and self.gradient_error <= GRADIENT_TOLERANCE
        )


@attrs.frozen
class _Bench:
    """A method with its parts, and the sizes and seed of its inputs."""

    method: Method
    parts: Mapping[str, Offer]
    device: torch.device
    batch: int
    samples: int
    dim: int
    seed: int

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.device.type == "cpu" else torch.float32

    def learner(self, changes: Mapping[str, Mapping[str, object]] | None = None) -> Learner:
        """Build the method's learner with some options changed; its initial weights are the same every time."""
        options = {table: self._options(table, part) for table, part in self.parts.items()}
        options |= {table: attrs.evolve(options[table], **dict(change)) for table, change in (changes or {}).items()}
        torch.manual_seed(self.seed)
        needs = self.needs
        channels = self._channels if needs.encoder_channels == "all" else 1
        if needs.readers:
            tables = map(table_of, needs.readers)
            chosen = [Chosen(cast("Encoder", self.parts[table]), options[table]) for table in tables]
            encoders = draw_readers(needs.readers, chosen, (channels, self.samples), self.dim, self.seed)
        else:
            build: Any = partial(self.parts["encoder"].build, options["encoder"])  # type: ignore[attr-defined]
            encoders = nn.ModuleList(build(channels, self.samples, self.dim) for _ in range(needs.encoders))
        objective = self._objective(options, encoders)
        return start(encoders.to(self.device, self.dtype), objective.to(self.device, self.dtype), 1e-3)

    def training(self, settings: TrainSettings) -> Training:
        """Put synthetic instances in a store on the device, with the method's views."""
        source = source_of(self.method, dict(self.parts), self.samples)
        needs = source.needs
        segments = needs.segments * needs.recordings
        patients = max(2, self.batch // 2)
        batch = synthetic_batch(self.batch, segments, self._channels, self.samples, patients, seed=self.seed)
        frames = batch.signal.flatten(0, 1).to(self.device, self.dtype)  # (frame, channel, sample)
        number = torch.arange(self.batch).repeat_interleave(segments).to(self.device)
        about = about_for((*needs.columns, *source.columns), self.batch, self.seed)
        store = Store(
            signal=frames,
            gain=torch.ones(len(frames), device=self.device),
            column=torch.arange(self._channels, device=self.device),
            patient=batch.patient.to(self.device)[number],
            record=number,
            position=torch.arange(len(frames), device=self.device) % segments,
            label=batch.label.to(self.device)[number],  # type: ignore[union-attr]
            patients=tuple(map(str, range(self.batch))),
            records=tuple(map(str, range(self.batch))),
            device=self.device,
            about={name: values.to(self.device) for name, values in about.items()},
        )
        frame = torch.arange(len(frames), device=self.device).view(self.batch, segments)
        channel = torch.arange(self._channels, device=self.device).expand(self.batch, -1)
        instances = Instances(frame, channel)
        return Training(store, source.make, instances, instances, settings, self.seed)

    @property
    def needs(self) -> Needs:
        return source_of(self.method, dict(self.parts)).needs

    @property
    def _channels(self) -> int:
        return channels_for(self.needs)

    def _options(self, table: str, part: Offer) -> Any:
        reader = next((one for one in self.needs.readers if one.encoder and table_of(one) == table), None)
        options = options_of_part(self.method, table, part)
        if reader is not None:
            options = choose_reader(self.method, self.parts, reader).options
        first = {name: choices[0] for name, choices in equivalents(part.options).items()}
        if any(field.name == "dropout" for field in attrs.fields(part.options)):
            first["dropout"] = 0.0  # type: ignore[assignment]
        return attrs.evolve(options, **first)

    def _objective(self, options: Mapping[str, Any], encoders: nn.ModuleList) -> nn.Module:
        if "loss" in self.parts:
            return ContrastiveObjective(self.parts["loss"].build(options["loss"]))  # type: ignore[attr-defined]
        setup = source_of(self.method, dict(self.parts), self.samples).setup(encoders, self.dim)
        made: nn.Module = self.parts["objective"].build(options["objective"], setup)  # type: ignore[attr-defined]
        return made


def verify_method(
    catalogue: Catalogue,
    name: str,
    device: torch.device,
    *,
    batch: int = 64,
    samples: int = 2500,
    embedding_dim: int = 128,
) -> Iterator[Agreement]:
    """Compare every implementation of a method's step with the plain one; yield each result."""
    method = catalogue.methods.get(name).offer
    parts, seeds = parts_of(method, catalogue), SEEDS.get(device.type, (1,))
    tries = [_ways(_Bench(method, parts, device, batch, samples, embedding_dim, seed)) for seed in seeds]
    for several in zip(*tries, strict=True):
        yield _middle(several)


def _ways(bench: _Bench) -> Iterator[Agreement]:
    training = bench.training(TrainSettings(batch_size=bench.batch))
    plain = _plain(bench.learner(), training)
    yield Agreement(f"plain, {str(bench.dtype).removeprefix('torch.')}", plain[0], 0.0, 0.0)
    for table, part in bench.parts.items():
        for option, choices in equivalents(part.options).items():
            for choice in choices[1:]:
                run = partial(_changed, bench, training, table, option, choice)
                yield _compare(f"{table} {option}={choice}", run, plain)
    yield _captured(bench, training)
    yield _gradcache(bench)


def _middle(several: tuple[Agreement, ...]) -> Agreement:
    """Return the run with the middle gradient error, or the first that failed or was skipped."""
    for one in several:
        if one.problem or one.skipped:
            return one
    return sorted(several, key=lambda one: one.gradient_error)[len(several) // 2]


def _changed(bench: _Bench, training: Training, table: str, option: str, choice: str) -> tuple[float, list[Tensor]]:
    return _plain(bench.learner({table: {option: choice}}), training)


def _plain(learner: Learner, training: Training) -> tuple[float, list[Tensor]]:
    """Compute loss and gradients of one plain step over all instances, without an update and never in TF32."""
    learner.encoders.train()
    learner.objective.train()
    generator = torch.Generator(training.store.device).manual_seed(training.seed)
    rows = torch.arange(len(training.train), device=training.store.device)
    views = training.make_views(training.store.gather(training.train, rows), generator)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        loss, _ = loss_of(learner.objective, Encoding(list(learner.encoders), views.encoder_of_view), views, generator)
        learner.optimiser.zero_grad()
        loss.backward()
    return float(loss.detach()), _gradients(learner)


def _captured(bench: _Bench, training: Training) -> Agreement:
    if bench.device.type != "cuda":
        return Agreement("captured", skipped="there is no GPU here")

    def run() -> tuple[float, list[Tensor]]:
        problems: list[str] = []
        learner = bench.learner()
        losses = CapturedEpochs(problems.append)(learner, training, 1, lambda *_: None)
        if problems:
            raise ValueError(problems[0])
        return float(losses[0]), _gradients(learner)

    learner = bench.learner()
    losses = plain_epoch(learner, training, 1, lambda *_: None)
    return _compare("captured", run, (float(losses[0]), _gradients(learner)))


def _gradcache(bench: _Bench) -> Agreement:
    """Compare GradCache with one loss over batches that are encoded one by one."""
    way = "gradcache, in four batches"
    objective = bench.parts.get("objective")
    if isinstance(objective, Objective) and not objective.of_embeddings:
        return Agreement(way, skipped="the objective reads more of the signals than their embeddings")
    settings = TrainSettings(batch_size=max(1, bench.batch // 4), contrast_batch=bench.batch)
    learner, training = bench.learner(), bench.training(settings)
    learner.encoders.train()
    learner.objective.train()
    generator = torch.Generator(bench.device).manual_seed(bench.seed)
    rows = torch.arange(bench.batch, device=bench.device)
    parts, made = [], []
    for some in rows.split(settings.batch_size):
        views = training.make_views(training.store.gather(training.train, some), generator)
        parts.append(encode(list(learner.encoders), views.encoder_of_view, views.signal))
        made.append(without_signal(views))
    views = join_views(made)
    loss, _ = loss_of(learner.objective, Known(torch.cat(parts, dim=1), views.signal), views, generator)
    loss.backward()

    def run() -> tuple[float, list[Tensor]]:
        found = bench.learner()
        found.encoders.train()
        found.objective.train()
        source = torch.Generator(bench.device).manual_seed(bench.seed)
        return float(contrast_step(found, training, rows, source)), _gradients(found)

    return _compare(way, run, (float(loss.detach()), _gradients(learner)))


def _compare(way: str, run: Callable[[], tuple[float, list[Tensor]]], exact: tuple[float, list[Tensor]]) -> Agreement:
    try:
        loss, gradients = run()
    except Unavailable as problem:  # not available on this machine, such as a GPU kernel without a GPU
        return Agreement(way, skipped=_first_line(problem))
    except Exception as problem:  # a plugin may raise anything; show it beside the name
        return Agreement(way, problem=_first_line(problem))
    error = sum(float((a - b).square().sum()) for a, b in zip(gradients, exact[1], strict=True)) ** 0.5
    size = sum(float(b.square().sum()) for b in exact[1]) ** 0.5
    return Agreement(way, loss, abs(loss - exact[0]) / max(abs(exact[0]), 1e-12), error / max(size, 1e-12))


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).strip().splitlines()), repr(problem))


def _gradients(learner: Learner) -> list[Tensor]:
    """Return the gradients of the encoders' weights, in float64 on the host; zeros for a weight without gradient."""
    return [
        torch.zeros(parameter.shape, dtype=torch.float64)
        if parameter.grad is None
        else parameter.grad.detach().double().cpu()
        for parameter in learner.encoders.parameters()
    ]
