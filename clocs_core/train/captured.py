"""Run epochs by replaying steps that were captured once as CUDA graphs; the host only starts the graphs.

A step launches dozens of small kernels that run faster than the host can launch them. A graph launches them all at
once. One graph holds a full batch, one the last, smaller batch. torch runs four small kernels before each graph to set
its random numbers, so a third graph holds several full batches. The device itself reads the next batch from the
epoch's order and a count that every step raises, so a replay needs nothing from the host.

Every replay uses the same memory: weights, gradients, the optimiser's state, the target of an objective. The graphs
register their generators, so random numbers continue from replay to replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import torch
from torch import Tensor

from clocs_core.progress import Tick
from clocs_core.train.epochs import Training, begin_epoch, order_of, plain_epoch, step_of
from clocs_core.train.learner import Learner

_WARM_UP = 3  # steps before a capture: libraries choose their kernels and allocate their buffers in them
_TOGETHER = 10  # steps per replay with one encoder: saves 8 of 188 us per step on an H200; capturing takes 0.1 s


class CapturedEpochs:
    """Runs epochs by replaying captured steps. If a step cannot be captured, it warns once and runs plain steps."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.warn = warn
        self.steps: _Steps | None = None
        self.refused = False

    def __call__(self, learner: Learner, training: Training, epoch: int, tick: Tick) -> Tensor:
        """Run an epoch, as `RunEpoch` specifies."""
        if self.steps is None and not self.refused:
            try:
                self.steps = _Steps(learner, training)
            except torch.OutOfMemoryError:
                raise
            except Exception as problem:  # a plugin may do anything that a graph cannot capture
                self.refused = True
                _renew_generator(training.store.device)
                cause = str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__
                self.warn(f"the training step cannot be captured and runs plainly, which is slower: {cause}")
        return plain_epoch(learner, training, epoch, tick) if self.steps is None else self.steps.epoch(epoch, tick)


@attrs.frozen
class Replay:
    """`steps` training steps that are replayed together, each on `size` instances."""

    size: int
    steps: int


def split_epoch(count: int, batch: int, together: int) -> list[Replay]:
    """List the replays of an epoch of `count` instances.

    Full batches come `together` at a time, then one by one; a smaller last batch comes last.
    """
    full, rest = divmod(count, batch)
    replays = [Replay(batch, together)] * (full // together) + [Replay(batch, 1)] * (full % together)
    return replays + [Replay(rest, 1)] * (rest > 0)


class _Steps:
    """The captured steps of one run, and the memory that they share."""

    def __init__(self, learner: Learner, training: Training) -> None:
        device, batch = training.store.device, training.settings.batch_size
        count = len(training.train)
        self.learner, self.training = learner, training
        self.generator = torch.Generator(device)
        # A step of several encoders is long and has many kernels: a graph of several would only be slow to capture.
        self.replays = split_epoch(count, batch, _TOGETHER if len(learner.encoders) == 1 else 1)
        self.order = torch.arange(count, device=device)
        self.drawn: tuple[int, Tensor] | None = None
        self.full = self.order[: count - count % batch].view(count // batch, batch)  # (step, batch)
        self.number = torch.zeros(1, dtype=torch.int64, device=device)  # number of the step in the epoch
        self.losses = torch.zeros(sum(replay.steps for replay in self.replays), device=device)
        begin_epoch(learner, training, self.generator, 1)  # the steps that warm up need all that an epoch sets
        pool: Any = torch.cuda.graph_pool_handle()  # all graphs share one pool: they never run at the same time
        self.graphs = {replay: self._capture(replay, pool) for replay in dict.fromkeys(self.replays)}

    def epoch(self, epoch: int, tick: Tick) -> Tensor:
        """Replay the steps of an epoch."""
        begin_epoch(self.learner, self.training, self.generator, epoch)
        drawn = self.drawn[1] if self.drawn is not None and self.drawn[0] == epoch else self._draw(epoch)
        self.order.copy_(drawn, non_blocking=True)
        self.number.zero_()
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

    def _capture(self, replay: Replay, pool: Any) -> torch.cuda.CUDAGraph:
        with _unchanged(self.learner, self.generator):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(_WARM_UP):
                    self.number.zero_()
                    self._step(replay.size)
            torch.cuda.current_stream().wait_stream(side)
        self.learner.optimiser.zero_grad()  # the capture must allocate the gradients itself
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        # thread_local: other threads, such as one that writes event files, may use the device during the capture.
        with torch.cuda.graph(graph, pool=pool, stream=own_stream(), capture_error_mode="thread_local"):
            for _ in range(replay.steps):
                self._step(replay.size)
        return graph

    def _step(self, size: int) -> None:
        """Run one step and raise the count of steps; this is the content of a graph."""
        learner, training = self.learner, self.training
        is_full = size == self.full.shape[1]
        rows = self.full.index_select(0, self.number)[0] if is_full else self.order[-size:]  # (size,)
        views = training.make_views(training.store.gather(training.train, rows), self.generator)
        loss = step_of(learner, training.settings, views, self.generator)
        self.losses.index_copy_(0, self.number, loss.reshape(1).to(self.losses.dtype))
        self.number.add_(1)


def own_stream() -> torch.cuda.Stream | None:
    """Return the stream to capture on: that of a run which shares the GPU with others; None for torch's own choice.

    Graphs that are captured on one stream share the memory that cuBLAS works in. Those of different runs are replayed
    at the same time, so each run captures on its own stream.
    """
    current = torch.cuda.current_stream()
    return None if current == torch.cuda.default_stream() else current  # the default stream cannot be captured


def _renew_generator(device: torch.device) -> None:
    """Reset the default generator, which an aborted capture leaves in capture mode."""
    number = torch.cuda.current_device() if device.index is None else device.index
    torch.cuda.default_generators[number].graphsafe_set_state(torch.Generator(device).graphsafe_get_state())


@contextmanager
def _unchanged(learner: Learner, generator: torch.Generator) -> Iterator[None]:
    """Restore weights, optimiser and generators in place after the block."""
    held = [*learner.encoders.state_dict().values(), *learner.objective.state_dict().values()]
    state = learner.optimiser.state
    held += [value for one in state.values() for value in one.values() if isinstance(value, Tensor)]
    kept = [tensor.clone() for tensor in held]
    known = {tensor.data_ptr() for tensor in held}
    device = generator.device
    random, own = torch.cuda.get_rng_state(device), generator.get_state()
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, value in zip(held, kept, strict=True):
                tensor.copy_(value)
            for one in state.values():
                for value in one.values():
                    if isinstance(value, Tensor) and value.data_ptr() not in known:
                        value.zero_()  # new in the block: Adam's averages and its count of steps start at zero
        torch.cuda.set_rng_state(random, device)
        generator.set_state(own)
