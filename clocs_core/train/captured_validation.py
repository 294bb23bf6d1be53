"""Validate by replaying CUDA graphs that were captured once, as training steps are replayed.

A graph embeds batches and computes their losses by the kernels of plain validation, so the values are the same. No
batch needs another, so small ones of a graph run at the same time. Losses and embeddings stay on the device, in memory
that every epoch writes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import attrs
import torch
from torch import Tensor

from clocs_core import seeds
from clocs_core.train.epochs import Training
from clocs_core.train.graphs import Lane, Replay, capture, lanes, moment, run_beside, split_epoch, steps_per_replay
from clocs_core.train.learner import Learner
from clocs_core.train.step import validation_step
from clocs_core.train.validation import PURPOSE, Validated, batches_kept, first_encoder_first, weighted_mean

_LANES = 4  # batches that run at the same time
_SMALL = 1 << 22  # values in the views of a batch: more fill an H200, and would need memory several times


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
    """

    def __init__(self, learner: Learner, training: Training, whole: bool, pool: Any) -> None:
        device, batch = training.store.device, training.settings.batch_size
        count = len(training.validation)
        self.learner, self.training, self.whole = learner, training, whole
        self.generator = torch.Generator(device)
        together = steps_per_replay(count, batch)
        self.replays = split_epoch(count, batch, together)
        self.order = torch.arange(count, device=device)
        self.full = self.order[: count - count % batch].view(count // batch, batch)  # (step, batch)
        self.first = torch.arange(together, device=device)
        self.numbers = self.first.clone()  # of the next batches
        self.values = 0  # in the views of a batch
        self.losses = torch.zeros(sum(replay.steps for replay in self.replays), device=device)
        self.kept: dict[int, _Kept] = {}  # by the size of a batch
        self._begin()
        self.graphs = {replay: self._capture(replay, pool) for replay in dict.fromkeys(self.replays)}

    def __call__(self) -> Validated:
        """Replay the validation of all batches."""
        self._begin()
        self.numbers.copy_(self.first)
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
            self.numbers.copy_(self.first)
            self._step(replay.size, 0)

        run_beside(warm_up, self.learner, self.generator)
        beside = lanes(_LANES) if replay.steps > 1 and self.values <= _SMALL else ()
        return capture(lambda: self._steps(replay, beside), self.generator, pool)

    def _steps(self, replay: Replay, beside: Sequence[Lane]) -> None:
        """Validate the batches of a replay, and raise the numbers of the next ones; this is the content of a graph."""
        begin = moment() if beside else None
        for number in range(replay.steps):
            with beside[number % len(beside)].after(begin) if begin else nullcontext():
                self._step(replay.size, number)
        for lane in beside:
            lane.join()
        self.numbers.add_(replay.steps)

    def _step(self, size: int, number: int) -> None:
        """Validate one batch, by its number in a replay."""
        learner, training = self.learner, self.training
        is_full, at = size == self.full.shape[1], self.numbers[number : number + 1]
        rows = self.full.index_select(0, at)[0] if is_full else self.order[-size:]  # (size,)
        views = training.make_views(training.store.gather(training.validation, rows), self.generator)
        self.values = views.signal.numel()
        loss, z = validation_step(
            list(learner.encoders), learner.objective, views, training.settings.autocast, self.generator
        )
        self.losses.index_copy_(0, at, loss.reshape(1).to(self.losses.dtype))
        if size not in self.kept:  # in the first step that warms up
            self.kept[size] = self._room(is_full, z, views.batch.patient, views.encoder_of_view)
        kept = self.kept[size]
        slot = at.clamp(max=kept.slots) if is_full else torch.zeros_like(at)
        kept.z.index_copy_(0, slot, z.unsqueeze(0))
        kept.patient.index_copy_(0, slot, views.batch.patient.unsqueeze(0))

    def _room(self, is_full: bool, z: Tensor, patient: Tensor, encoder_of_view: tuple[int, ...]) -> _Kept:
        every, full = batches_kept(self.training, self.whole), len(self.full)
        slots = min(every, full) if is_full else max(0, every - full)
        room = (z.new_zeros((slots + 1, *z.shape)), patient.new_zeros((slots + 1, *patient.shape)))
        return _Kept(slots, *room, encoder_of_view)
