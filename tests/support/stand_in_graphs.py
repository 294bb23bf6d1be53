"""CUDA graphs without a GPU: what is captured is noted, not run, and every replay runs it on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from clocs_core.train import captured


class Graph:
    """Stands in for torch.cuda.CUDAGraph: holds the steps that were captured, and runs them when it is replayed."""

    capturing: Graph | None = None

    def __init__(self) -> None:
        self.steps: list[tuple[NotedSteps, int]] = []

    def register_generator_state(self, generator: torch.Generator) -> None: ...

    def replay(self) -> None:
        for steps, size in self.steps:
            captured._Steps._step(steps, size)


class NotedSteps(captured._Steps):
    """Captured steps whose content is noted while a graph is being captured, as a GPU does."""

    def _step(self, size: int) -> None:
        if Graph.capturing is None:
            super()._step(size)
        else:
            Graph.capturing.steps.append((self, size))


class _Stream:
    def wait_stream(self, other: _Stream) -> None: ...


@contextmanager
def _capture(graph: Graph, **_options: Any) -> Iterator[None]:
    Graph.capturing = graph
    try:
        yield
    finally:
        Graph.capturing = None


def capture_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `CapturedEpochs` run on a CPU with stand-ins for all that it uses of torch.cuda."""
    stand_ins: dict[str, Any] = {
        "CUDAGraph": Graph,
        "graph": _capture,
        "graph_pool_handle": lambda: None,
        "Stream": _Stream,
        "current_stream": _Stream,
        "default_stream": _Stream,
        "stream": lambda _stream: nullcontext(),
        "get_rng_state": lambda _device: torch.get_rng_state(),
        "set_rng_state": lambda state, _device: torch.set_rng_state(state),
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: tensor)
    monkeypatch.setattr(captured, "_Steps", NotedSteps)
