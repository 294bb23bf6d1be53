"""Events of a run that never was, for tests of what listeners and displays make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from clocs_core import Comparison, EmbeddingMap, EpochDone, Health, Picture, RunDone, RunStarted, Score

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000030000000208060000009d7482ab"
    "0000001349444154789c63fcffff7f030300066401010000ffff03000a1b02fe"
)  # a header that says 3 x 2; the plugin hands the bytes on as they are


def run_at(folder: Path, first_epoch: int = 1, method: str = "m", **more: dict[str, object]) -> RunStarted:
    tables: dict[str, dict[str, object]] = {
        "run": {"seed": 4},
        "train": {"epochs": 3, "learning_rate": 1e-4},
        "loss": {"name": "a|b"},
    }
    return RunStarted(folder=folder, method=method, dataset="d", settings=tables | more, first_epoch=first_epoch)


def epoch_done(epoch: int, train: float, losses: list[float], **other: Any) -> EpochDone:
    """An epoch with these losses; `other` are fields that differ."""
    fields: dict[str, Any] = {
        "epoch": epoch,
        "losses": torch.tensor(losses),
        "train_loss": train,
        "validation_loss": train + 1,
        "health": Health(7.5, embedding_dim=16, same_patient=0.75, other_patient=0.25, loss_over_log_batch=0.5),
        "improved": True,
        "best_epoch": epoch,
        "instances": 4,
        "seconds": 0.1,
        "last": False,
    }
    return EpochDone(**fields | other)


EPOCH = epoch_done(2, 0.5, [0.0], validation_loss=0.25, best_epoch=1, seconds=1.0)


def score(protocol: Literal["linear", "finetune", "prior"], init: str, value: float, fraction: float = 1.0) -> Score:
    return Score(protocol, init, "d", fraction, "auroc", "frame", value, value - 0.125, value + 0.125)


def run_done(count: int = 3, method: str = "m", value: float = 0.75) -> RunDone:
    return RunDone(
        epochs_run=2,
        best_epoch=1,
        scores=(
            score("linear", method, value),
            score("linear", "random", 0.5),
            score("linear", method, 0.25, 0.1),
            score("prior", "random", 0.5),
        ),
        comparisons=(Comparison(method, "random", "linear", "d", 1.0, "auroc", "frame", value - 0.5, 0.0, 0.5),),
        embeddings=EmbeddingMap(
            embedding=np.arange(count * 2, dtype=np.float32).reshape(count, 2) / np.float32(3),
            patient=tuple(f"p\t{i}" for i in range(count)),
            record=tuple(f"r\n{i}" for i in range(count)),
            label=tuple("AF" for _ in range(count)),
        ),
        pictures=(Picture("loss", "Loss", "By epoch.", PNG),),
    )
