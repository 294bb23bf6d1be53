"""Labels of both kinds of task, with and without gaps, and what they cost, written in loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch

Kind: TypeAlias = Literal["one_of", "any_of"]
LabelRow: TypeAlias = int | list[float]
"""The label of a frame: a class, -1 for none, or an answer per class, NaN for none."""

CLASSES = 3
NAN = float("nan")
NO_LABEL: dict[Kind, LabelRow] = {"one_of": -1, "any_of": [NAN] * CLASSES}
LABELS: dict[tuple[Kind, str], Sequence[LabelRow]] = {
    ("one_of", "all labelled"): [0, 2, 1, 1, 0],
    ("one_of", "some labelled"): [0, -1, 1, -1, 2],
    ("one_of", "one labelled"): [-1, -1, -1, -1, 2],
    ("one_of", "batch of one"): [1],
    ("any_of", "all labelled"): [[0, 0, 0], [1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 1]],
    ("any_of", "some labelled"): [[0, 0, 0], [NAN] * 3, [1, 0, 1], [NAN] * 3, [0, 0, 1]],
    ("any_of", "partly labelled"): [[0, 0, 0], [NAN, 1, 0], [1, 0, 1], [1, 1, NAN], [0, 0, 1]],
    ("any_of", "batch of one"): [[0, 1, 1]],
}


def loss_in_loops(kind: Kind, logits: torch.Tensor, labels: torch.Tensor) -> float:
    """The mean over views and over the frames that have a label; logits (view, batch, class)."""
    terms = []
    for view in logits.tolist():
        for row, label in zip(view, labels.tolist(), strict=True):
            if kind == "one_of" and label != -1:
                terms.append(_cross_entropy(row, label))
            if kind == "any_of" and not any(math.isnan(one) for one in label):
                terms.append(_binary_cross_entropy(row, label))
    return sum(terms) / len(terms) if terms else 0.0


def as_labels(kind: Kind, rows: Sequence[LabelRow]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.int64 if kind == "one_of" else torch.float32)


def _cross_entropy(logits: list[float], label: int) -> float:
    return -math.log(math.exp(logits[label]) / sum(math.exp(one) for one in logits))


def _binary_cross_entropy(logits: list[float], label: list[float]) -> float:
    terms = []
    for logit, answer in zip(logits, label, strict=True):
        probability = 1 / (1 + math.exp(-logit))
        terms.append(-math.log(probability if answer == 1 else 1 - probability))
    return sum(terms) / len(terms)
