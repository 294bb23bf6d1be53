"""Where the time of a training step goes: a few steps under torch's profiler, as a trace and as a short table."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import attrs
import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

from clocs_core.train.epochs import Tick

__all__ = ["Share", "StepProfiler"]

_WAIT, _WARM_UP, STEPS = 3, 2, 10  # steps let pass, steps profiled and thrown away, steps looked at
_ROWS = 12


@attrs.frozen
class Share:
    """What one operation takes of a step."""

    name: str
    milliseconds: float
    share: float


class StepProfiler:
    """Profiles some steps of a run, which goes on unchanged. A context manager; call `tick` after each step."""

    def __init__(self, folder: Path, device: torch.device, tick: Tick) -> None:
        self.inner, self.on_gpu = tick, device.type == "cuda"
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.on_gpu else [])]
        self.shares: list[Share] = []
        write = tensorboard_trace_handler(str(folder))

        def ready(found: Any) -> None:
            self.shares = self._table(found)
            write(found)

        self.profiler = profile(
            activities=activities,
            schedule=schedule(wait=_WAIT, warmup=_WARM_UP, active=STEPS, repeat=1),
            on_trace_ready=ready,
        )

    def __enter__(self) -> StepProfiler:
        self.profiler.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.profiler.__exit__(kind, problem, trace)

    def tick(self, step: int, steps: int) -> None:
        """A step is over."""
        self.profiler.step()
        self.inner(step, steps)

    def _table(self, found: Any) -> list[Share]:
        """The operations that take most of a step, on the device where there is one, and the rest together."""
        field = "self_device_time_total" if self.on_gpu else "self_cpu_time_total"
        times = {one.key: getattr(one, field) / 1000 / STEPS for one in found.key_averages() if "#" not in one.key}
        whole = sum(times.values()) or 1.0
        most = sorted(times.items(), key=lambda item: -item[1])[:_ROWS]
        named = {"ProfilerStep*": "Python between the operations"}
        rows = [Share(named.get(name, name), time, time / whole) for name, time in most if time > 0]
        rest = whole - sum(row.milliseconds for row in rows)
        return [*rows, Share("everything else", rest, rest / whole)]
