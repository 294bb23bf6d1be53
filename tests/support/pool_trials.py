"""A trial for protocols that read the sequence of an encoder."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from clocs_core import Features, Task, Trial


class Copy(nn.Module):
    """An encoder whose sequence is the signal itself."""

    stride, width = 1, 32

    def sequence(self, signal: torch.Tensor) -> torch.Tensor:
        return signal.transpose(1, 2)


def trial_of(kind: str) -> Trial:
    """Signals in which one position of twenty differs between classes: a mean over time hardly shows it."""
    task = {
        "one_of": Task("t", ("a", "b")),
        "any_of": Task("t", ("a", "b"), kind="any_of"),
        "number": Task("t", kind="number"),
    }[kind]
    rng, parts, signals = np.random.default_rng(0), {}, {}
    for part, count in (("train", 200), ("validation", 60), ("scored", 60)):
        code = rng.integers(0, 2, count)
        signal = rng.normal(0, 1, (count, 32, 20))
        place = rng.integers(0, 20, count)
        signal[np.arange(count), 0, place] += 12.0  # the place to look at
        signal[np.arange(count), 1, place] = np.where(code, 12.0, -12.0)
        labels = {
            "one_of": code,
            "any_of": np.stack([code, 1 - code], axis=1),
            "number": (50 + 20 * code).astype(np.float32),
        }
        ids = np.arange(count)
        parts[part] = Features(np.zeros((count, 0), np.float32), labels[kind], ids, ids)
        signals[part] = torch.from_numpy(signal.astype(np.float32))
    return Trial(
        task=task,
        **parts,
        seed=0,
        device=torch.device("cpu"),
        encoder=Copy().eval(),
        signal=lambda part, rows: signals[part][torch.from_numpy(rows)],
    )
