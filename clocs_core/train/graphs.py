"""CUDA graphs of steps: which there are in an epoch, and how one is captured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import torch
from torch import Tensor

from clocs_core.train.learner import Learner

_WARM_UP = 3  # steps before a capture: libraries choose their kernels and allocate their buffers in them
_TOGETHER = range(12, 7, -1)  # steps per replay: ten save 8 of 188 us per step on an H200; capturing takes 0.1 s


@attrs.frozen
class Replay:
    """`steps` steps that are replayed together, each on `size` instances."""

    size: int
    steps: int


def split_epoch(count: int, batch: int, together: int) -> list[Replay]:
    """List the replays of an epoch of `count` instances.

    Full batches come `together` at a time, then one by one; a smaller last batch comes last.
    """
    full, rest = divmod(count, batch)
    replays = [Replay(batch, together)] * (full // together) + [Replay(batch, 1)] * (full % together)
    return replays + [Replay(rest, 1)] * (rest > 0)


def steps_per_replay(count: int, batch: int) -> int:
    """Choose how many full batches an epoch of `count` instances replays together, so that few are left over."""
    return min(_TOGETHER, key=lambda together: count // batch % together)


def run_beside(step: Callable[[], None], learner: Learner, generator: torch.Generator) -> None:
    """Run a step some times on its own stream, before it is captured. Leave learner and generators as they were."""
    with _unchanged(learner, generator):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                step()
        torch.cuda.current_stream().wait_stream(side)


def capture(content: Callable[[], None], generator: torch.Generator, pool: Any) -> torch.cuda.CUDAGraph:
    """Capture what `content` launches as one graph. It draws random numbers from `generator`."""
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    # thread_local: other threads, such as one that writes event files, may use the device during the capture.
    with torch.cuda.graph(graph, pool=pool, stream=_own_stream(), capture_error_mode="thread_local"):
        content()
    return graph


class Lane:
    """A stream beside the one that captures: what a graph has on it runs at the same time as what it has elsewhere."""

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()

    @contextmanager
    def after(self, moment: torch.cuda.Event) -> Iterator[None]:
        """Capture the block here. It waits for what was captured before `moment`, and for earlier blocks of the lane.

        Hold on to what the block makes until it has been read, and the next block that may run meanwhile is captured.
        """
        self.stream.wait_event(moment)
        with torch.cuda.stream(self.stream):
            yield

    def join(self) -> None:
        """Let all that is captured from now on wait for this lane."""
        torch.cuda.current_stream().wait_stream(self.stream)


def lanes(count: int) -> tuple[Lane, ...]:
    """Make lanes for the graphs of a run; none where runs share the GPU.

    torch has 32 streams, so that lanes of different runs could be the same stream, and share the memory of cuBLAS.
    """
    return () if _own_stream() is not None else tuple(Lane() for _ in range(count))


def moment() -> torch.cuda.Event:
    """Mark a moment in the capture, for lanes to begin at."""
    event: torch.cuda.Event = torch.cuda.current_stream().record_event()
    return event


def _own_stream() -> torch.cuda.Stream | None:
    """Return the stream to capture on: that of a run which shares the GPU with others; None for torch's own choice.

    Graphs that are captured on one stream share the memory that cuBLAS works in. Those of different runs are replayed
    at the same time, so each run captures on its own stream.
    """
    current = torch.cuda.current_stream()
    return None if current == torch.cuda.default_stream() else current  # the default stream cannot be captured


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
