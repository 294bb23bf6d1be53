"""Time steps in milliseconds: by CUDA events on a GPU, by the clock elsewhere."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

SAMPLES, SAMPLE_MS, MOST_SECONDS = 15, 25.0, 2.0


def milliseconds(step: Callable[[], object], steps: int, on_gpu: bool) -> float:
    """Measure the mean milliseconds of some steps. On a GPU one more runs first, so that none waits for the host."""
    if not on_gpu:
        began = time.perf_counter()
        for _ in range(steps):
            step()
        return 1000 * (time.perf_counter() - began) / steps
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    step()
    first.record()
    for _ in range(steps):
        step()
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) / steps


def clock(step: Callable[[], object], on_gpu: bool) -> dict[str, Any]:
    """Measure median and quartiles in milliseconds. A sample lasts 25 ms, but has at least 1 and at most 200 steps."""
    for _ in range(3):
        step()
    once = max(milliseconds(step, 1, on_gpu), 1e-3)
    steps = max(1, min(200, math.ceil(SAMPLE_MS / once)))
    samples = max(3, min(SAMPLES, int(1000 * MOST_SECONDS / (steps * once))))
    low, middle, high = statistics.quantiles([milliseconds(step, steps, on_gpu) for _ in range(samples)], n=4)
    return {"median_ms": middle, "quartiles_ms": [low, high], "samples": samples, "steps": steps}


def unless_late(ends: float, measure: Callable[[], object]) -> object:
    """Measure, unless the clock is past `ends` or the memory is not enough; then say which of the two it was."""
    if time.monotonic() > ends:
        return "not measured: out of time"
    try:
        return measure()
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return "out of memory"
