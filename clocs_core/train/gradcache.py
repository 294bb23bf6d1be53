"""Contrast more instances than the device can hold at once, exactly: GradCache (Gao et al., 2021).

First compute the embeddings of all instances, batch by batch and without gradient. Then take the loss of all of them
at once. Then encode each batch again, with the same views and the same dropout, and propagate its part of the gradient
of the embeddings through the encoder. The gradients equal those of one large batch in which BatchNorm takes its
statistics batch by batch; without BatchNorm, those of the plain large batch. The cost is a second forward pass.

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
from clocs_core.train.learner import Learner
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
    """Compute the gradients of all weights from the loss of all rows. Return the loss, on the device."""
    chunks = rows.split(training.settings.batch_size)
    buffers = [(buffer, buffer.clone()) for buffer in learner.encoders.buffers()]
    randoms, parts, made = [], [], []
    with torch.no_grad():
        for chunk in chunks:
            randoms.append(_Randomness.now(generator))
            views, z = _encode(learner, training, chunk, generator)
            parts.append(z)
            made.append(without_signal(views))
        for buffer, before in buffers:  # BatchNorm's running statistics see every batch once, in the second pass
            buffer.copy_(before)
    z = torch.cat(parts, dim=1).requires_grad_()  # (view, contrast batch, dim)
    views = join_views(made)
    learner.optimiser.zero_grad()
    loss, components = loss_of(learner.objective, Known(z, views.signal), views, generator)
    loss.backward()
    if components:
        learner.components.add(components, len(rows))
    assert z.grad is not None  # the loss depends on embeddings, as the conformance checks see to
    behind = _Randomness.now(generator)
    for chunk, random, part in zip(chunks, randoms, z.grad.split([len(one) for one in chunks], dim=1), strict=True):
        random.put_back(generator)
        _, again = _encode(learner, training, chunk, generator)
        again.backward(part)
    behind.put_back(generator)  # else the next step would draw what the objective drew
    return loss.detach()


@attrs.frozen(eq=False)
class Known:
    """Stands in for `encode` where the embeddings `z` of the views with this `signal` are known."""

    z: Tensor
    signal: Tensor

    def __call__(self, signal: Tensor) -> Tensor:
        """Return the embeddings. Raise PluginError for any other signal."""
        if signal is not self.signal:
            raise PluginError(
                "An objective that is offered with `of_embeddings=True` may encode nothing but `views.signal`, as it "
                "is. Its plugin has to be repaired; until then, leave out `contrast_batch`."
            )
        return self.z

    def sequence(self, signal: Tensor) -> Tensor:
        """Raise PluginError: sequences are not kept."""
        raise PluginError(
            "An objective that is offered with `of_embeddings=True` may not read sequences. Its plugin has to be "
            "repaired; until then, leave out `contrast_batch`."
        )


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


def _encode(learner: Learner, training: Training, rows: Tensor, generator: torch.Generator) -> tuple[Views, Tensor]:
    views = training.make_views(training.store.gather(training.train, rows), generator)
    settings = training.settings
    z = encode(list(learner.encoders), views.encoder_of_view, views.signal, settings.per_view, settings.autocast)
    return views, z


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
