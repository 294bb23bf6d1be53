"""Capture a step as a CUDA graph and time its kernels, so that a benchmark measures the GPU and not Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

import torch

T = TypeVar("T")


def capture(step: Callable[[], T]) -> Callable[[], T]:
    """Record a step as a graph and return its replay. Every replay overwrites what the step returned."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = step()

    def replay() -> T:
        graph.replay()
        return output

    return replay


def kernel_times(replay: Callable[[], object], steps: int = 20) -> dict[str, float]:
    """Measure how many microseconds each kernel of a captured step is busy; the longest comes first."""
    from torch.profiler import ProfilerActivity, profile

    replay()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(steps):
            replay()
        torch.cuda.synchronize()
    return longest_first((one.key, one.self_device_time_total / steps) for one in seen.key_averages())


def longest_first(spent: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Add up times by the first 60 characters of a kernel's name, longest first. Those without any are left out."""
    found: defaultdict[str, float] = defaultdict(float)
    for name, time in spent:
        found[name[:60]] += time
    return {name: round(found[name], 2) for name in sorted(found, key=found.__getitem__, reverse=True) if found[name]}
