"""Contrast more instances than the device can hold at once, exactly: GradCache (Gao et al., 2021).

First compute the embeddings of all instances, batch by batch and without gradient. Then take the loss of all of them
at once. Then encode each batch again, with the same views and the same dropout, and propagate its part of the gradient
of the embeddings through the encoder. The gradients equal those of one large batch in which BatchNorm takes its
statistics batch by batch; without BatchNorm, those of the plain large batch. The cost is a second forward pass.
"""

from __future__ import annotations

import attrs
import torch
from torch import Tensor

from clocs_core.contracts.batches import Views
from clocs_core.progress import Tick
from clocs_core.train.epochs import Training, begin_epoch, order_of
from clocs_core.train.learner import Learner
from clocs_core.train.step import ContrastiveObjective, encode


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
        tick(step, len(batches))
    return torch.stack(losses)  # (step,)


def contrast_step(learner: Learner, training: Training, rows: Tensor, generator: torch.Generator) -> Tensor:
    """Compute the gradients of the encoders' weights from the loss of all rows. Return the loss, on the device."""
    objective = learner.objective
    assert isinstance(objective, ContrastiveObjective)  # the plan refuses objectives with state
    chunks = rows.split(training.settings.batch_size)
    buffers = [(buffer, buffer.clone()) for buffer in learner.encoders.buffers()]
    randoms, parts, patients = [], [], []
    with torch.no_grad():
        for chunk in chunks:
            randoms.append(_Randomness.now(generator))
            views, z = _encode(learner, training, chunk, generator)
            parts.append(z)
            patients.append(views.batch.patient)
        for buffer, before in buffers:  # BatchNorm's running statistics see every batch once, in the second pass
            buffer.copy_(before)
    z = torch.cat(parts, dim=1).requires_grad_()  # (view, contrast batch, dim)
    loss = objective.of(z, torch.cat(patients), views.pairs)
    learner.optimiser.zero_grad()
    loss.backward()  # fills the gradients of a projector, too
    gradient = z.grad
    assert gradient is not None
    for chunk, random, part in zip(chunks, randoms, gradient.split([len(one) for one in chunks], dim=1), strict=True):
        random.put_back(generator)
        _, again = _encode(learner, training, chunk, generator)
        again.backward(part)
    return loss.detach()


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
