"""Predictions of an evaluation as it leaves them, made from random numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def make_predictions(path: Path, methods: dict[str, float], protocol: str, share: float, seed: int) -> None:
    """Probabilities of 40 patients with 2 rows each, the sharper the better; random guesses for `random`."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(40) % 2, 2)
    names = np.repeat([f"patient-{number:02d}" for number in range(40)], 2)
    arrays = {"patient": names, "record": names, "label": label}
    for init, sharpness in {**methods, "random": 0.0}.items():
        up = 1 / (1 + np.exp(-(sharpness * (2 * label - 1) + rng.normal(size=80))))
        arrays[f"probability/{protocol}/{init}/{share:g}"] = np.stack([1 - up, up], axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, allow_pickle=False, **arrays)
