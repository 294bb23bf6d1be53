"""Small recordings in memory, and settings that train on them in a second: for tests of the Python API."""

from __future__ import annotations

from typing import Any

import numpy as np

import clocs_core as clocs

QUICK: dict[str, Any] = {"epochs": 2, "embedding_dim": 8, "resamples": 20, "device": "cpu", "progress": False}
SAMPLES = 800


def recordings(people: int = 16) -> clocs.Recordings:
    """Make two recordings of each patient, with slow or fast waves."""
    rng, time = np.random.default_rng(0), np.arange(SAMPLES) / 100
    kinds = np.repeat(np.arange(people) % 2, 2)
    x = np.stack([np.sin(2 * np.pi * (1 + kind) * time)[None] + 0.3 * rng.normal(size=(1, SAMPLES)) for kind in kinds])
    return clocs.Recordings(
        x,
        patients=np.repeat(np.arange(people), 2),
        labels=np.array(["slow", "fast"])[kinds],
        sampling_rate=100,
        channels=["II"],
    )
