"""Profile a few training steps with torch's profiler, as a trace and as a short table.

On a GPU the host runs ahead. A profile therefore begins and ends with a host sync: it holds whole steps, and nothing
of the validation between two epochs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.profiler import ProfilerAction, ProfilerActivity, profile, tensorboard_trace_handler

from clocs_core.progress import Tick
from clocs_core.train.epochs import RunEpoch, Training
from clocs_core.train.learner import Learner
from clocs_core.train.validation import Validated, validate

STEPS = 10
_WAIT = 3  # steps before the profile: the first ones choose kernels, allocate memory and, on a GPU, are captured
_ROWS = 12
_MARK = re.compile(r"[\w.]+(#[\w.]+|\*)")  # torch's events for a whole step or optimiser, which overlap the kernels


@attrs.frozen
class Share:
    """The time of one operation, and its share of a step."""

    name: str
    milliseconds: float
    share: float


@attrs.frozen
class StepProfile:
    """The average time of a step. On a GPU its operations are kernels; it lasts from the first kernel to the last."""

    steps: int
    milliseconds: float
    gpu_busy: float | None  # ms per step; None on a CPU
    shares: tuple[Share, ...]


class StepProfiler:
    """Profiles some steps of one epoch, without changing the results of the run."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        self.folder, self.device = folder, device
        self.found: StepProfile | None = None
        self.warm = False
        self.profiler: Any = None
        self.first = self.last = 0  # steps of the epoch that were done when the profile began and ended

    def watch(self, run_epoch: RunEpoch) -> RunEpoch:
        """Wrap `run_epoch` so that some steps are profiled. Validation is that of `run_epoch`."""
        return _Watched(self, run_epoch)

    def run(self, run_epoch: RunEpoch, learner: Learner, training: Training, epoch: int, tick: Tick) -> Tensor:
        """Run an epoch, and profile some of its steps if none were profiled yet."""
        if self.found is not None:
            return run_epoch(learner, training, epoch, tick)

        def step_done(done: int, steps: int) -> None:
            self._tick(done, steps)
            tick(done, steps)

        if self.warm:
            self._begin(0)
        try:
            losses = run_epoch(learner, training, epoch, step_done)
            if self.profiler is not None:
                self._end()
        finally:
            if self.profiler is not None:  # the epoch failed: discard the profile
                self.profiler.stop()
                self.profiler = None
        return losses

    def _tick(self, done: int, steps: int) -> None:
        self.warm = self.warm or done >= _WAIT
        if self.profiler is not None:
            self.last = done
            if done - self.first >= STEPS:
                self._end()
            elif done < steps:
                self.profiler.step()  # a mark in the trace
        elif self.found is None and self.warm and done < steps:
            self._begin(done)

    def _begin(self, done: int) -> None:
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.device.type == "cuda" else [])]
        with profile(
            activities=activities, acc_events=True
        ):  # the first profile of a process takes long to start, so start an empty one before
            torch.zeros(1, device=self.device)
        self._wait()
        self.first = self.last = done
        self.profiler = profile(activities=activities, schedule=lambda _: ProfilerAction.RECORD, acc_events=True)
        self.profiler.start()

    def _end(self) -> None:
        self._wait()
        profiler, self.profiler = self.profiler, None
        profiler.stop()
        steps = self.last - self.first
        self.found = gpu_profile(profiler, steps) if self.device.type == "cuda" else cpu_profile(profiler, steps)
        tensorboard_trace_handler(str(self.folder))(profiler)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


@attrs.frozen
class _Watched:
    """A `RunEpoch` whose steps are profiled."""

    profiler: StepProfiler
    run_epoch: RunEpoch

    def __call__(self, learner: Learner, training: Training, epoch: int, tick: Tick) -> Tensor:
        return self.profiler.run(self.run_epoch, learner, training, epoch, tick)

    def validate(self, learner: Learner, training: Training, whole: bool) -> Validated:
        return validate(self.run_epoch, learner, training, whole)


def cpu_profile(profiler: Any, steps: int) -> StepProfile:
    """Sum the self time of each operation; the self time of a step is Python's between the operations."""
    times: Counter[str] = Counter()
    for one in profiler.key_averages():
        name = "Python between the operations" if one.key.startswith("ProfilerStep") else one.key
        times[name] += one.self_cpu_time_total / 1000 / steps
    return StepProfile(steps, sum(times.values()), None, _shares(times))


def gpu_profile(profiler: Any, steps: int) -> StepProfile:
    """Sum the time of kernels and copies by name; there are none if the driver hides them."""
    spans: list[tuple[float, float]] = []
    times: Counter[str] = Counter()
    for one in profiler.events():
        if one.device_type.name == "CUDA" and not _MARK.fullmatch(one.name):
            spans.append((one.time_range.start, one.time_range.end))
            times[kernel_name(one.name)] += one.time_range.elapsed_us() / 1000 / steps
    lasted = max(end for _, end in spans) - min(start for start, _ in spans) if spans else 0.0
    return StepProfile(steps, lasted / 1000 / steps, covered(spans) / 1000 / steps, _shares(times))


def _shares(times: Counter[str]) -> tuple[Share, ...]:
    """Return the operations that take most time, then the rest as one row; empty if no time was measured."""
    whole = sum(times.values())
    rows = [Share(name, time, time / whole) for name, time in times.most_common(_ROWS) if time > 0]
    rest = whole - sum(row.milliseconds for row in rows)
    return (*rows, Share("everything else", rest, rest / whole)) if rows else ()


def kernel_name(name: str) -> str:
    """Return the name of a kernel without its C++ template and argument types."""
    plain = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", plain, maxsplit=1)[0].strip() or name


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of spans (start, end)."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def profile_lines(found: StepProfile | None, folder: Path) -> list[str]:
    """Format the profile as lines of text. folder: the run folder, for the command that opens the trace."""
    if found is None:
        return ["the run had too few steps to profile; try more epochs or a smaller batch"]
    if found.gpu_busy is None:
        lines = [f"a step takes {found.milliseconds:.2f} ms, by operation:"]
    elif not found.gpu_busy:
        lines = ["the profiler saw nothing on the GPU: its driver may show kernels to administrators alone"]
    else:
        lasts = f"under the profiler a step lasts {found.milliseconds:.2f} ms"
        lines = [f"{lasts}, and the GPU is busy for {found.gpu_busy:.2f} of them; by kernel:"]
    lines += [f"  {row.share:6.1%}  {row.milliseconds:8.3f} ms  {row.name}" for row in found.shares]
    return [*lines, f"the trace is in {folder / 'profile'}: tensorboard --logdir {folder}, or chrome://tracing"]
