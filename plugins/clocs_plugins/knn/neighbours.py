"""Find the nearest training rows of every scored row, exactly, and average their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import normalize, one_hot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from clocs_core import Trial

_AT_ONCE = 2**24  # distances at a time: 128 MB


def vote(trial: Trial, k: int, nearness: str) -> NDArray[np.float64]:
    """Return the mean label (n, output) of the k nearest training rows, or of all where there are fewer."""
    near, far = (_rows(rows.embedding, trial.device, nearness) for rows in (trial.train, trial.scored))
    values = _values(trial)  # (m, output)
    size = max(1, _AT_ONCE // len(near))
    means = []
    for some in far.split(size):
        distance = torch.cdist(some, near, compute_mode="donot_use_mm_for_euclid_dist")  # (n, m)
        chosen = distance.topk(min(k, len(near)), largest=False).indices  # (n, k)
        means.append(values[chosen].mean(1))
    found: NDArray[np.float64] = torch.cat(means).cpu().numpy()  # sync point
    return found


def _rows(embedding: NDArray[np.float32], device: torch.device, nearness: str) -> Tensor:
    """Return rows in float64; of length 1 for the cosine, where the nearest by distance is the nearest by angle."""
    rows = torch.from_numpy(embedding).to(device, torch.float64)
    return normalize(rows, dim=1) if nearness == "cosine" else rows


def _values(trial: Trial) -> Tensor:
    """Return the training labels as numbers (m, output): 0 and 1 for each class, or the number itself."""
    label = torch.from_numpy(trial.train.label).to(trial.device)
    if trial.task.kind == "one_of":
        label = one_hot(label, len(trial.task.classes))
    return label.reshape(len(label), -1).double()
