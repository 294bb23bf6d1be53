"""A step as a CUDA graph, and the time of each kernel in it: for benchmarks that would else measure Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

import torch

T = TypeVar("T")


def capture(step: Callable[[], T]) -> Callable[[], T]:
    """The same step as the replay of a graph; what it returns is written anew by every replay."""
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
    """Microseconds that each kernel of a captured step is busy, the longest first."""
    from torch.profiler import ProfilerActivity, profile

    replay()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(steps):
            replay()
        torch.cuda.synchronize()
    return longest_first((one.key, one.self_device_time_total / steps) for one in seen.key_averages())


def longest_first(spent: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Times by the first 60 characters of a name, those of kernels that share them added up; none that took none."""
    found: defaultdict[str, float] = defaultdict(float)
    for name, time in spent:
        found[name[:60]] += time
    return {name: round(found[name], 2) for name in sorted(found, key=found.__getitem__, reverse=True) if found[name]}
