"""Normalise embeddings to length 1; their products are cosines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

LEAST_NORM = 1e-8
"""Least length of an embedding; the cosine of a shorter one with anything is 0, and so is its gradient."""


def directions(embedding: Tensor) -> Tensor:
    """Scale embeddings to length 1, with a gradient through the length; embeddings below LEAST_NORM become zero."""
    square = embedding.square().sum(-1, keepdim=True)
    has_direction = square > LEAST_NORM**2
    # The inner `where` keeps 1/sqrt(0) out of the backward pass, where zero times infinity would be NaN.
    scale = torch.where(has_direction, torch.where(has_direction, square, 1.0).rsqrt(), 0.0)
    return embedding * scale
