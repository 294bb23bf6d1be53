"""Runs and evaluations of the fake plugin, each made in a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fake_plugins import points
from no_pictures import without_pictures
from numpy.typing import NDArray
from torch import Tensor

from clocs_core.artifacts.tensors import read_tensors, save_tensors
from clocs_core.cli import main

TUNE = ["--protocol", "finetune", "--epochs", "2", "--batch-size", "64", "--learning-rate", "0.01"]
FEW = ["-o", "resamples=20", "-o", "permutations=30"]
RUN = ["run", "--plugin", "together", "--dataset", "tiny", "--epochs", "2", *FEW, "--device", "cpu"]
QUICK = [*FEW, "--device", "cpu", "--workers", "1"]
ARGUMENTS: dict[str, Any] = {"epochs": 2, "embedding_dim": 8, "device": "cpu", "progress": False}
ARGUMENTS |= {"resamples": 20, "permutations": 30}
"""Arguments of `clocs.pretrain` that train on `recordings_in_memory` in a second."""


def make_run(folder: Path, *more: str) -> Path:
    """A small finished run; what it prepares lies beside it."""
    with without_pictures():
        assert main([*RUN, "--data-root", str(folder / "data"), "--out", str(folder / "run"), *more], points()) == 0
    return folder / "run"


def evaluate_run(run: Path, *more: str) -> Path:
    """Evaluate a run on the data set `many`; the folder of the evaluation."""
    before = set((run / "evaluations").glob("*"))
    words = ["evaluate", str(run), "--dataset", "many", "--data-root", str(run.parent / "data"), *QUICK, *more]
    assert main(words, points()) == 0
    (made,) = set((run / "evaluations").glob("*")) - before
    return made


def tune_run(folder: Path, *more: str, run: tuple[str, ...] = ()) -> Path:
    """A run, and in it one evaluation by fine-tuning on `many`; the folder of the evaluation."""
    return evaluate_run(make_run(folder, *run), *TUNE, *more)


def rewritten(path: Path, change: Callable[[dict[str, Tensor], dict[str, Any]], object]) -> Path:
    """The same classifier file with its weights or its description changed."""
    tensors, about = read_tensors(path)
    change(tensors, about)
    save_tensors(tensors, about, path)
    return path


def expected_probability(path: Path, signal: NDArray[np.floating], kind: str, normalise: bool) -> list[float]:
    """The probabilities of one frame (channel, sample) by loops over the weights of the encoder `flat`, in float64."""
    weights = {name: tensor.double().tolist() for name, tensor in read_tensors(path)[0].items()}
    inputs: list[float] = []
    for channel in signal.astype(np.float32).astype(float).tolist():
        low, high = min(channel), max(channel)
        inputs += [(value - low) / (high - low + 1e-8) if normalise else value for value in channel]
    hidden = []
    for row, bias in zip(weights["encoder.1.weight"], weights["encoder.1.bias"], strict=True):
        hidden.append(bias + sum(w * x for w, x in zip(row, inputs, strict=True)))
    logits = []
    for row, bias in zip(weights["head.weight"], weights["head.bias"], strict=True):
        logits.append(bias + sum(w * x for w, x in zip(row, hidden, strict=True)))
    if kind == "any_of":
        return [1 / (1 + float(np.exp(-one))) for one in logits]
    total = sum(float(np.exp(one)) for one in logits)
    return [float(np.exp(one)) / total for one in logits]
