"""Bootstrap your own latent: Grill et al., NeurIPS 2020, as the CLOCS paper (ICML 2021) runs it in appendix C.

With f the encoder, g its exponential moving average and q the predictor, the loss of views x_1, …, x_V is

    mean over ordered pairs of views a != b of d(q(f(x_a)), g(x_b))

where d is the mean squared error, "minimizing the mean squared error of the two representations", or, in Grill et
al., the squared distance of the two normalised embeddings, which is 2 - 2 cos. They add the two directions of a pair;
we take the mean. There is no projector, and "we introduce asymmetry by repeating Layer 4": q is linear with a ReLU.

Nothing pushes embeddings apart. If all embeddings are zero, the mean squared error is zero, so a low loss alone does
not show that anything was learnt.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Ranks, Views

LEAST_NORM = 1e-8
"""Least length of an embedding; the cosine of a shorter one with anything is 0, and so is its gradient."""

Distance: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"


class Bootstrap(nn.Module):
    """The objective: a trained predictor, and a target that is a moving average of the encoder.

    encoder: copied as the first target; no reference to it is kept. decay: tau_d of the moving average. bf16: compute
    the target in bf16, as the encoder is.
    """

    def __init__(
        self,
        encoder: nn.Module,
        embedding_dim: int,
        *,
        decay: float,
        distance: Distance,
        predictor_relu: bool = True,
        bf16: bool = False,
    ) -> None:
        super().__init__()
        self.decay, self.bf16 = decay, bf16
        self.distance = distance
        activation = nn.ReLU() if predictor_relu else nn.Identity()
        self.predictor = nn.Sequential(nn.Linear(embedding_dim, embedding_dim), activation)
        self.target = copy.deepcopy(encoder).requires_grad_(False)

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views, ranks: Ranks | None = None) -> Tensor:
        """Compute the loss of one batch. Raise ValueError for a single view, and for views of several encoders.

        ranks: the processes that share the batch. The target is the same in all of them, as the encoder is.
        """
        _refuse_bad_views(views)
        prediction = self.predictor(encode(views.signal))  # (view, batch, dim)
        with torch.no_grad(), torch.autocast(views.signal.device.type, torch.bfloat16, enabled=self.bf16):
            flat = self.target(views.signal.flatten(0, 1))  # (view * batch, dim)
        target = flat.unflatten(0, views.signal.shape[:2])  # (view, batch, dim)
        loss = bootstrap_loss(prediction, target, self.distance, views.pairs)
        return loss if ranks is None else ranks.share_of_mean(loss)

    def after_step(self, encoder: nn.Module) -> None:
        """Move the target's parameters towards the encoder's, in place: one fused kernel, not one per parameter.

        The running statistics of BatchNorm come from the target's own passes, as in the code of Grill et al.: in
        training the target normalises by the batch and updates its statistics; in validation it uses them. The
        encoder's statistics belong to activations of other weights. With them, the target's embeddings in validation
        differ from those in training by a third at a decay of 0.99, and by 3 % at 0.9; with its own, by 5 to 7 % at
        both.
        """
        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(encoder.parameters()), 1 - self.decay)


def bootstrap_loss(
    prediction: Tensor, target: Tensor, distance: Distance, pairs: tuple[tuple[int, int], ...] = ()
) -> Tensor:
    """Compute the mean distance of predictions (view, batch, dim) to targets (view, batch, dim) of other views.

    pairs: pairs of views to compare, each in both directions; empty: all pairs.
    Computed in float32, or in float64 for float64 predictions, also under autocast.
    """
    dtype = torch.promote_types(prediction.dtype, torch.float32)
    prediction, target = prediction.to(dtype), target.to(dtype)
    both_ways = [
        distance(prediction[a], target[b]) + distance(prediction[b], target[a])
        for a, b in pairs or combinations(range(len(prediction)), 2)
    ]
    return torch.stack(both_ways).mean() / 2


def squared_error(prediction: Tensor, target: Tensor) -> Tensor:
    """Compute the mean squared difference of (batch, dim) and (batch, dim)."""
    return (prediction - target).square().mean()


def cosine_distance(prediction: Tensor, target: Tensor) -> Tensor:
    """Compute 2 - 2 cos of (batch, dim) and (batch, dim), mean over the batch: 0 if parallel, 4 if opposite."""
    return 2 - 2 * (_directions(prediction) * _directions(target)).sum(-1).mean()


DISTANCES: Mapping[str, Distance] = {"mse": squared_error, "cosine": cosine_distance}


def _directions(embedding: Tensor) -> Tensor:
    """Scale embeddings to length 1, with a gradient through the length; embeddings below LEAST_NORM become zero."""
    square = embedding.square().sum(-1, keepdim=True)
    has_direction = square > LEAST_NORM**2
    # The inner `where` keeps 1/sqrt(0) out of the backward pass, where zero times infinity would be NaN.
    return embedding * torch.where(has_direction, torch.where(has_direction, square, 1.0).rsqrt(), 0.0)


def _refuse_bad_views(views: Views) -> None:
    if len(views.signal) < 2:
        raise ValueError(
            f"the objective `byol` got {len(views.signal)} view, expected two or more: one predicts another. "
            "Use it with a view generator that makes several."
        )
    if any(views.encoder_of_view):
        raise ValueError(
            f"the objective `byol` got views of several encoders, {views.encoder_of_view}, but its target follows the "
            "first one only. Use it with views that one encoder reads."
        )
