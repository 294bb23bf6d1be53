"""Run epochs by replaying steps that were captured once as CUDA graphs; the host only starts the graphs.

A step launches dozens of small kernels that run faster than the host can launch them. A graph launches them all at
once. One graph holds a full batch, one the last, smaller batch. torch runs four small kernels before each graph to set
its random numbers, so a third graph holds several full batches; there, the views of a batch are made while the one
before it is learnt. The device itself reads the next batch from the epoch's order and a count that every graph raises,
so a replay needs nothing from the host. Validation has graphs of its own: `captured_validation`.

Every replay uses the same memory: weights, gradients, the optimiser's state, the target of an objective. The graphs
register their generators, so random numbers continue from replay to replay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from clocs_core.contracts.batches import Views
from clocs_core.progress import Tick
from clocs_core.train.captured_validation import CapturedValidation
from clocs_core.train.epochs import Training, begin_epoch, order_of, plain_epoch, step_of
from clocs_core.train.graphs import Replay, capture, lanes, moment, run_beside, split_epoch, steps_per_replay
from clocs_core.train.learner import Learner
from clocs_core.train.validation import Validated, plain_validation

Made = TypeVar("Made")


class CapturedEpochs:
    """Runs epochs, and validates, by replaying captured steps. What cannot be captured runs plainly, with a warning."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.warn = warn
        self.steps: _Steps | None = None
        self.checks: CapturedValidation | None = None
        self.refused = False
        self.refused_validation = False

    def __call__(self, learner: Learner, training: Training, epoch: int, tick: Tick) -> Tensor:
        """Run an epoch, as `RunEpoch` specifies."""
        if self.steps is None and not self.refused:
            self.steps = self._try("training", training, lambda: _Steps(learner, training))
            self.refused = _any_refuses(self.steps is None, training)
            self.steps = None if self.refused else self.steps
        return plain_epoch(learner, training, epoch, tick) if self.steps is None else self.steps.epoch(epoch, tick)

    def validate(self, learner: Learner, training: Training, whole: bool) -> Validated:
        """Validate, as `Validates` specifies: plainly where the training step cannot be captured."""
        captures = self.steps is not None and training.group is None  # several processes join embeddings of any length
        if self.checks is None and captures and not self.refused_validation:
            assert self.steps is not None
            pool = self.steps.pool
            self.checks = self._try("validation", training, lambda: CapturedValidation(learner, training, whole, pool))
            if self.checks is None:
                self.refused_validation = True
                self.steps = None  # captured again: its graphs draw from the generator that was reset
        return plain_validation(learner, training, whole) if self.checks is None else self.checks()

    def _try(self, step: str, training: Training, make: Callable[[], Made]) -> Made | None:
        """Capture the graphs of a step. If that fails, warn and return None."""
        try:
            return make()
        except torch.OutOfMemoryError:
            raise
        except Exception as problem:  # a plugin may do anything that a graph cannot capture
            _renew_generator(training.store.device)
            cause = str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__
            self.warn(f"the {step} step cannot be captured and runs plainly, which is slower: {cause}")
            return None


class _Steps:
    """The captured steps of one run, and the memory that they share."""

    def __init__(self, learner: Learner, training: Training) -> None:
        device, batch = training.store.device, training.settings.batch_size
        count = len(training.train)
        self.learner, self.training = learner, training
        self.generator = torch.Generator(device)
        # A step of several encoders is long and has many kernels: a graph of several would only be slow to capture.
        together = steps_per_replay(count, batch) if len(learner.encoders) == 1 else 1
        self.replays = split_epoch(count, batch, together)
        self.order = torch.arange(count, device=device)
        self.drawn: tuple[int, Tensor] | None = None
        self.full = self.order[: count - count % batch].view(count // batch, batch)  # (step, batch)
        self.first = torch.arange(together, device=device)
        self.numbers = self.first.clone()  # of the next steps in the epoch
        self.lanes = lanes(1)  # makes views
        self.losses = torch.zeros(sum(replay.steps for replay in self.replays), device=device)
        begin_epoch(learner, training, self.generator, 1)  # the steps that warm up need all that an epoch sets
        self.pool: Any = torch.cuda.graph_pool_handle()  # all graphs share one pool: they never run at the same time
        self.graphs = {replay: self._capture(replay) for replay in dict.fromkeys(self.replays)}

    def epoch(self, epoch: int, tick: Tick) -> Tensor:
        """Replay the steps of an epoch."""
        begin_epoch(self.learner, self.training, self.generator, epoch)
        drawn = self.drawn[1] if self.drawn is not None and self.drawn[0] == epoch else self._draw(epoch)
        self.order.copy_(drawn, non_blocking=True)
        self.numbers.copy_(self.first)
        done = 0
        for replay in self.replays:
            self.graphs[replay].replay()
            done += replay.steps
            tick(done, len(self.losses))
        losses = self.losses.clone()
        # Draw the next order while the GPU is busy: for 51,200 instances it took a host 1 to 9 ms, as long as 50 steps.
        self.drawn = epoch + 1, self._draw(epoch + 1)
        return losses

    def _draw(self, epoch: int) -> Tensor:
        """Return the order of an epoch in pinned memory, which the device can read directly."""
        return order_of(self.training, epoch).pin_memory()

    def _capture(self, replay: Replay) -> torch.cuda.CUDAGraph:
        def warm_up() -> None:
            self.numbers.copy_(self.first)
            self._learn(self._views(replay.size, 0), 0)

        run_beside(warm_up, self.learner, self.generator)
        self.learner.optimiser.zero_grad()  # the capture must allocate the gradients itself
        return capture(lambda: self._steps(replay), self.generator, self.pool)

    def _steps(self, replay: Replay) -> None:
        """Run the steps of a replay, and raise the numbers of the next ones; this is the content of a graph.

        Random numbers are drawn in the order of plain steps, whatever runs at the same time.
        """
        views = self._views(replay.size, 0)
        for number in range(replay.steps):
            before = moment() if self.lanes else None
            self._learn(views, number)
            if number + 1 < replay.steps:
                # The old views are held until the new ones are there: the two must not have the same memory.
                views = self._views_beside(replay.size, number + 1, before)
        self.numbers.add_(replay.steps)

    def _views_beside(self, size: int, number: int, since: torch.cuda.Event | None) -> Views:
        """Make the views of a step while the one before it is learnt, where there is a lane for it."""
        if since is None:
            return self._views(size, number)
        (lane,) = self.lanes
        with lane.after(since):
            views = self._views(size, number)
        lane.join()
        return views

    def _views(self, size: int, number: int) -> Views:
        """Make the views of the step with this number in a replay."""
        training, is_full = self.training, size == self.full.shape[1]
        at = self.numbers[number : number + 1]
        rows = self.full.index_select(0, at)[0] if is_full else self.order[-size:]  # (size,)
        return training.make_views(training.store.gather(training.train, rows), self.generator)

    def _learn(self, views: Views, number: int) -> None:
        """Update the learner once, and keep the loss."""
        training = self.training
        loss = step_of(self.learner, training.settings, views, self.generator, training.group)
        self.losses.index_copy_(0, self.numbers[number : number + 1], loss.reshape(1).to(self.losses.dtype))


def _any_refuses(refused: bool, training: Training) -> bool:
    """Return whether a step cannot be captured in one of the processes: a replay of the others would wait for it."""
    if training.group is None:
        return refused
    return bool(training.group.sum(torch.tensor([int(refused)], device=training.store.device)).item())  # sync point


def _renew_generator(device: torch.device) -> None:
    """Reset the default generator, which an aborted capture leaves in capture mode."""
    number = torch.cuda.current_device() if device.index is None else device.index
    torch.cuda.default_generators[number].graphsafe_set_state(torch.Generator(device).graphsafe_get_state())
