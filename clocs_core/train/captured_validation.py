"""Validate by replaying CUDA graphs that were captured once, as training steps are replayed.

A graph embeds a batch and computes its loss by the kernels of plain validation, so the values are the same. Losses and
embeddings stay on the device, in memory that every epoch writes again.
"""

from __future__ import annotations

from typing import Any

import attrs
import torch
from torch import Tensor

from clocs_core import seeds
from clocs_core.train.epochs import Training
from clocs_core.train.graphs import Replay, capture, run_beside, split_epoch
from clocs_core.train.learner import Learner
from clocs_core.train.step import validation_step
from clocs_core.train.validation import PURPOSE, Validated, batches_kept, first_encoder_first, weighted_mean


@attrs.frozen(eq=False)
class _Kept:
    """Memory for the results of batches of one size: a slot for each that is kept, and one for all others."""

    slots: int  # batches kept
    z: Tensor  # (slots + 1, view, n, dim)
    patient: Tensor  # (slots + 1, n)
    encoder_of_view: tuple[int, ...]


class CapturedValidation:
    """The captured validation of one run. Calling it validates the weights as they are now, without a host sync.

    whole: as in `plain_validation`. pool: memory that graphs share which never run at the same time.
    together: full batches in a replay.
    """

    def __init__(self, learner: Learner, training: Training, whole: bool, pool: Any, together: int) -> None:
        device, batch = training.store.device, training.settings.batch_size
        count = len(training.validation)
        self.learner, self.training, self.whole = learner, training, whole
        self.generator = torch.Generator(device)
        self.replays = split_epoch(count, batch, together)
        self.order = torch.arange(count, device=device)
        self.full = self.order[: count - count % batch].view(count // batch, batch)  # (step, batch)
        self.number = torch.zeros(1, dtype=torch.int64, device=device)  # number of the batch
        self.losses = torch.zeros(sum(replay.steps for replay in self.replays), device=device)
        self.kept: dict[int, _Kept] = {}  # by the size of a batch
        self._begin()
        self.graphs = {replay: self._capture(replay, pool) for replay in dict.fromkeys(self.replays)}

    def __call__(self) -> Validated:
        """Replay the validation of all batches."""
        self._begin()
        self.number.zero_()
        for replay in self.replays:
            self.graphs[replay].replay()
        held = tuple(self.kept.values())  # full batches, then the ragged one
        z = torch.cat([slot for one in held for slot in one.z[: one.slots].unbind()], dim=1)  # (view, n, dim)
        patient = torch.cat([slot for one in held for slot in one.patient[: one.slots].unbind()])
        mean = weighted_mean(self.losses, len(self.training.validation), self.training.settings.batch_size)
        return mean, first_encoder_first(z, held[0].encoder_of_view), patient

    def _begin(self) -> None:
        """Put the networks and the generator at the start of a validation."""
        self.learner.encoders.eval()
        self.learner.objective.eval()
        self.generator.manual_seed(seeds.derive(self.training.seed, PURPOSE))

    def _capture(self, replay: Replay, pool: Any) -> torch.cuda.CUDAGraph:
        def warm_up() -> None:
            self.number.zero_()
            self._step(replay.size)

        run_beside(warm_up, self.learner, self.generator)
        return capture(lambda: self._step(replay.size), replay.steps, self.generator, pool)

    def _step(self, size: int) -> None:
        """Validate one batch and raise the count of batches; this is the content of a graph."""
        learner, training = self.learner, self.training
        is_full = size == self.full.shape[1]
        rows = self.full.index_select(0, self.number)[0] if is_full else self.order[-size:]  # (size,)
        views = training.make_views(training.store.gather(training.validation, rows), self.generator)
        loss, z = validation_step(
            list(learner.encoders), learner.objective, views, training.settings.autocast, self.generator
        )
        self.losses.index_copy_(0, self.number, loss.reshape(1).to(self.losses.dtype))
        if size not in self.kept:  # in the first step that warms up
            self.kept[size] = self._room(is_full, z, views.batch.patient, views.encoder_of_view)
        kept = self.kept[size]
        slot = self.number.clamp(max=kept.slots) if is_full else torch.zeros_like(self.number)
        kept.z.index_copy_(0, slot, z.unsqueeze(0))
        kept.patient.index_copy_(0, slot, views.batch.patient.unsqueeze(0))
        self.number.add_(1)

    def _room(self, is_full: bool, z: Tensor, patient: Tensor, encoder_of_view: tuple[int, ...]) -> _Kept:
        every, full = batches_kept(self.training, self.whole), len(self.full)
        slots = min(every, full) if is_full else max(0, every - full)
        room = (z.new_zeros((slots + 1, *z.shape)), patient.new_zeros((slots + 1, *patient.shape)))
        return _Kept(slots, *room, encoder_of_view)
