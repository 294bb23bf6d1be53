"""CUDA graphs without a GPU: what is captured is noted, not run, and every replay runs it on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import attrs
import pytest
import torch
from torch import Tensor

from clocs_core.train import captured, captured_validation


@attrs.frozen
class Graph:
    """Stands in for torch.cuda.CUDAGraph: runs what was captured when it is replayed."""

    content: Callable[[], None]

    def replay(self) -> None:
        self.content()


def note(content: Callable[[], None], generator: torch.Generator, pool: Any) -> Graph:
    """Stand in for `graphs.capture`."""
    return Graph(content)


@attrs.frozen
class _Stream:
    """All of them are the same one."""

    def wait_stream(self, other: _Stream) -> None: ...

    def wait_event(self, event: object) -> None: ...

    def record_event(self) -> object:
        return self


def capture_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `CapturedEpochs` run on a CPU with stand-ins for all that it uses of torch.cuda."""
    stand_ins: dict[str, Any] = {
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
    for module in (captured, captured_validation):
        monkeypatch.setattr(module, "capture", note)
