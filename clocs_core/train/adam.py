"""Adam for small networks on a GPU: update all weights in two launches that fill the device.

torch's fused update gives each block of threads 65,536 values. The paper's encoder has 48,000 weights, 41,000 of them
in one matrix, so one block works while the others wait: 22 µs of a step of 200. Here each matrix is cut into pieces
and each piece gets a block. Large networks get larger pieces, so that there are never more than some hundreds. Values
and state equal those of torch.optim.Adam, so a checkpoint can move between devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

PIECE = 4096
"""Values that a block of threads updates; at this size the pieces of the paper's encoder fit into one launch."""
MOST_PIECES = 256
"""Pieces of all weights, beside one for each weight: enough to fill a GPU. Each piece costs host and launch time."""


class SplitAdam(torch.optim.Adam):
    """torch.optim.Adam, fused and capturable, on dense float32 weights without weight decay or amsgrad."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, lr=lr, fused=True, capturable=True)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every weight that has a gradient."""
        assert closure is None  # nothing here evaluates a loss again
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            states = [self._started(weight) for weight in weights]
            torch._foreach_add_([state["step"] for state in states], 1)
            size = piece_size(sum(weight.numel() for weight in weights))
            pieces = [
                piece
                for weight, state in zip(weights, states, strict=True)
                for piece in _pieces(size, weight, weight.grad, state["exp_avg"], state["exp_avg_sq"], state["step"])
            ]
            values, gradients, averages, squares, steps = ([piece[part] for piece in pieces] for part in range(5))
            torch._fused_adam_(
                values,
                gradients,
                averages,
                squares,
                [],
                steps,
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=0.0,
                eps=group["eps"],
                amsgrad=False,
                maximize=False,
            )

    def _started(self, weight: Tensor) -> dict[str, Tensor]:
        """Return the state of a weight; initialise it as torch.optim.Adam does if it has none."""
        state: dict[str, Tensor] = self.state[weight]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=weight.device)
            state["exp_avg"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
        return state


def piece_size(values: int) -> int:
    """Return the size of a piece, a multiple of 4096, for a network of `values` weights; it grows with the network."""
    return PIECE * max(1, -(-values // (PIECE * MOST_PIECES)))


def _pieces(
    size: int, weight: Tensor, gradient: Tensor, average: Tensor, square: Tensor, step: Tensor
) -> Iterator[tuple[Tensor, ...]]:
    """Cut a weight, its gradient and its averages into pieces; every piece shares the count of steps."""
    parts = [weight, gradient, average, square]
    if not all(part.is_contiguous() for part in parts):  # cannot be cut without a copy
        yield (*parts, step)
        return
    for piece in zip(*(part.view(-1).split(size) for part in parts), strict=True):
        yield (*piece, step)
