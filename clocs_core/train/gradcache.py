"""Contrast more instances than the device can hold at once, exactly: GradCache (Gao et al., 2021).

First compute the embeddings of all instances, batch by batch and without gradient. Then take the loss of all of them
at once. Then encode each batch again, with the same views and the same dropout, and propagate its part of the gradient
of the embeddings through the encoder. The gradients equal those of one large batch in which BatchNorm takes its
statistics batch by batch; without BatchNorm, those of the plain large batch. The cost is a second forward pass.

Over several processes each has a part of the instances, in their order, and encodes those of a batch that are its own.
Views are made of whole batches in every process, so that random numbers are those of one process.

It serves losses, and objectives that take nothing but embeddings from the signals. An objective runs once per step, on
all instances, so its heads, buffers and `after_step` see what they would see in the large batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import torch
from torch import Tensor

from clocs_core.contracts.batches import Batch, Views
from clocs_core.errors import PluginError
from clocs_core.progress import Tick
from clocs_core.train.epochs import Training, begin_epoch, order_of
from clocs_core.train.gradient_sums import sum_gradients
from clocs_core.train.learner import Learner
from clocs_core.train.promises import learnable
from clocs_core.train.ranks import Part
from clocs_core.train.step import after_step, encode, loss_of


def gradcache_epoch(learner: Learner, training: Training, epoch: int, tick: Tick) -> Tensor:
    """Run an epoch of steps over `contrast_batch` instances each, as `RunEpoch` specifies."""
    generator = torch.Generator(training.store.device)
    begin_epoch(learner, training, generator, epoch)
    together = training.settings.contrast_batch or training.settings.batch_size
    batches = order_of(training, epoch).to(training.store.device).split(together)
    losses = []
    for step, rows in enumerate(batches, start=1):
        losses.append(contrast_step(learner, training, rows, generator))
        learner.optimiser.step()
        after_step(learner.objective, list(learner.encoders))
        tick(step, len(batches))
    return torch.stack(losses)  # (step,)


def contrast_step(learner: Learner, training: Training, rows: Tensor, generator: torch.Generator) -> Tensor:
    """Compute the gradients of all weights from the loss of all rows. Return the loss, on the device.

    With several processes it is the share of this one in the loss; the gradients are those of all.
    """
    group = training.group
    ranks = None if group is None else group.divide(len(rows))
    chunks = _own_chunks(rows, training.settings.batch_size, ranks)
    buffers = [(buffer, buffer.clone()) for buffer in learner.encoders.buffers()]
    randoms, parts, made = [], [], []
    with torch.no_grad():
        for chunk in chunks:
            randoms.append(_Randomness.now(generator))
            views = _views(training, chunk, generator)
            if chunk.encoded:
                parts.append(_encode(learner, training, views, chunk))
            made.append(without_signal(views))
        for buffer, before in buffers:  # BatchNorm's running statistics see every batch once, in the second pass
            buffer.copy_(before)
    z = torch.cat(parts, dim=1).requires_grad_()  # (view, contrast batch, dim)
    views = join_views(made)
    learner.optimiser.zero_grad()
    loss, components = loss_of(learner.objective, Known(z, views.signal, ranks is not None), views, generator, ranks)
    learnable(loss, learner.objective).backward()
    if components:
        learner.components.add(components, len(rows))
    assert z.grad is not None  # the loss depends on embeddings, as the conformance checks see to
    behind = _Randomness.now(generator)
    sizes = [chunk.stop - chunk.start for chunk in chunks]
    for chunk, random, part in zip(chunks, randoms, z.grad.split(sizes, dim=1), strict=True):
        if chunk.encoded:
            random.put_back(generator)
            _encode(learner, training, _views(training, chunk, generator), chunk).backward(part)
    behind.put_back(generator)  # else the next step would draw what the objective drew
    if group is not None:
        sum_gradients(group, learner.optimiser.weights)
    return loss.detach()


@attrs.frozen(eq=False)
class _Chunk:
    """Instances of which views are made together. Those from `start` to before `stop` are encoded by this process.

    encoded: whether the encoder is called. A process without any instance calls it on none, once: its weights then have
    gradients of zeros, as many as those of the others.
    """

    rows: Tensor
    start: int
    stop: int
    encoded: bool = True


def _own_chunks(rows: Tensor, size: int, ranks: Part | None) -> list[_Chunk]:
    parts = rows.split(size)
    if ranks is None:
        return [_Chunk(part, 0, len(part)) for part in parts]
    found = []
    for number, part in enumerate(parts):
        start, stop = (min(max(end - number * size, 0), len(part)) for end in (ranks.own.start, ranks.own.stop))
        found.append(_Chunk(part, start, stop, start < stop))
    return found if any(one.encoded for one in found) else [attrs.evolve(found[0], encoded=True), *found[1:]]


@attrs.frozen(eq=False)
class Known:
    """Stands in for `encode` where the embeddings `z` of the views with this `signal` are known.

    shared: over several processes, where `z` has the own instances alone.
    """

    z: Tensor
    signal: Tensor
    shared: bool = False

    def __call__(self, signal: Tensor) -> Tensor:
        """Return the embeddings. Raise PluginError for any other signal."""
        if signal is not self.signal and not self._is_own_part(signal):
            raise PluginError(
                "An objective that is offered with `of_embeddings=True` may encode nothing but `views.signal`, as it "
                "is. Its plugin has to be repaired; until then, leave out `contrast_batch`."
            )
        return self.z

    def _is_own_part(self, signal: Tensor) -> bool:
        """Return whether a signal is that of the own instances, which is cut out of the whole without a copy."""
        same = signal.untyped_storage().data_ptr() == self.signal.untyped_storage().data_ptr()
        return self.shared and same and signal.shape[:2] == self.z.shape[:2]

    def sequence(self, signal: Tensor) -> Tensor:
        """Raise PluginError: sequences are not kept."""
        raise PluginError(
            "An objective that is offered with `of_embeddings=True` may not read sequences. Its plugin has to be "
            "repaired; until then, leave out `contrast_batch`."
        )

    def both(self, signal: Tensor) -> tuple[Tensor, Tensor]:
        """Raise PluginError, as `sequence` does."""
        return self.z, self.sequence(signal)


def without_signal(views: Views) -> Views:
    """Return the views with NaN for every sample, which takes no memory. Whoever reads them gets a loss of NaN."""
    batch = attrs.evolve(views.batch, signal=_nan_like(views.batch.signal))
    return attrs.evolve(views, signal=_nan_like(views.signal), batch=batch)


def _nan_like(signal: Tensor) -> Tensor:
    return signal.new_full((), torch.nan).expand(signal.shape)


def join_views(parts: Sequence[Views]) -> Views:
    """Join views without signals along the batch."""
    first, count = parts[0], sum(len(part.batch.patient) for part in parts)
    view, _, channel, sample = first.signal.shape
    held = [part.batch for part in parts]
    ids = {
        name: torch.cat([getattr(one, name) for one in held]) for name in ("patient", "record", "segment", "channel")
    }
    labels = [one.label for one in held if one.label is not None]
    targets = [part.target for part in parts if part.target is not None]
    batch = Batch(
        signal=_nan_like(first.batch.signal[:1]).expand(count, *first.batch.signal.shape[1:]),
        **ids,
        label=torch.cat(labels) if labels else None,
        about={name: torch.cat([one.about[name] for one in held]) for name in held[0].about},
    )
    signal = _nan_like(first.signal[:, :1]).expand(view, count, channel, sample)
    return attrs.evolve(first, signal=signal, batch=batch, target=torch.cat(targets, dim=1) if targets else None)


def _views(training: Training, chunk: _Chunk, generator: torch.Generator) -> Views:
    return training.make_views(training.store.gather(training.train, chunk.rows), generator)


def _encode(learner: Learner, training: Training, views: Views, chunk: _Chunk) -> Tensor:
    """Embed the own instances of a chunk, as (view, own, dim)."""
    settings, whole = training.settings, chunk.stop - chunk.start == len(chunk.rows)
    signal = views.signal if whole else views.signal[:, chunk.start : chunk.stop]
    return encode(list(learner.encoders), views.encoder_of_view, signal, settings.per_view, settings.autocast)


@attrs.frozen(eq=False)
class _Randomness:
    """States of the generators: that of the views, and torch's default ones, from which dropout draws."""

    views: Tensor
    host: Tensor
    device: Tensor | None

    @classmethod
    def now(cls, generator: torch.Generator) -> _Randomness:
        on_gpu = generator.device.type == "cuda"
        device = torch.cuda.get_rng_state(generator.device) if on_gpu else None
        return cls(generator.get_state(), torch.get_rng_state(), device)

    def put_back(self, generator: torch.Generator) -> None:
        generator.set_state(self.views)
        torch.set_rng_state(self.host)
        if self.device is not None:
            torch.cuda.set_rng_state(self.device, generator.device)
