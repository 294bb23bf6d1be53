"""Adam: each weight by itself, or all weights in two launches that fill a GPU.

Values and state equal those of torch.optim.Adam, so a checkpoint can move between devices. The first optimiser of
torch.optim imports torch's compiler, which takes longer than a small training: these do not.

torch's fused update gives each block of threads 65,536 values. The paper's encoder has 48,000 weights, 41,000 of them
in one matrix, so one block works while the others wait: 22 µs of a step of 200. Here each matrix is cut into pieces
and each piece gets a block. Large networks get larger pieces, so that there are never more than some hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

import torch
from torch import Tensor

PIECE = 4096
"""Values that a block of threads updates; at this size the pieces of the paper's encoder fit into one launch."""
MOST_PIECES = 256
"""Pieces of all weights, beside one for each weight: enough to fill a GPU. Each piece costs host and launch time."""


BETAS, EPS = (0.9, 0.999), 1e-8
"""Decay of the two averages, and what is added to the root of the second: torch's defaults, and the paper's."""


class Adam:
    """Adam without weight decay or amsgrad, in the arithmetic of torch.optim.Adam on a CPU, to the last bit.

    The fused update would save 1 ms of a step of 43 (benchmarks/cpu_step.py), but it rounds a tenth of the weights
    differently after 100 steps: not worth scores that differ in their last digits from all earlier ones.
    """

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        self.weights, self.lr = list(params), lr
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        """Set all gradients to None."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update every weight that has a gradient."""
        for weight, gradient, state in self._due():
            state["step"] += 1
            step = state["step"].item()
            state["exp_avg"].lerp_(gradient, 1 - BETAS[0])
            state["exp_avg_sq"].mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
            root = (state["exp_avg_sq"].sqrt() / (1 - BETAS[1] ** step) ** 0.5).add_(EPS)
            weight.addcdiv_(state["exp_avg"], root, value=-self.lr / (1 - BETAS[0] ** step))

    def _due(self) -> list[tuple[Tensor, Tensor, dict[str, Tensor]]]:
        """Return every weight that has a gradient, with it and with its state, which begins at zero."""
        for weight in self.weights:
            if weight.grad is not None and weight not in self.state:
                self.state[weight] = {
                    "step": torch.zeros((), dtype=torch.float32, device=weight.device),
                    "exp_avg": torch.zeros_like(weight, memory_format=torch.preserve_format),
                    "exp_avg_sq": torch.zeros_like(weight, memory_format=torch.preserve_format),
                }
        return [(weight, weight.grad, self.state[weight]) for weight in self.weights if weight.grad is not None]

    def state_dict(self) -> dict[int, dict[str, Tensor]]:
        """Return the state of each weight by its number. A weight that never had a gradient has none."""
        return {number: self.state[weight] for number, weight in enumerate(self.weights) if weight in self.state}

    def load_state_dict(self, held: Mapping[int, Mapping[str, Tensor]]) -> None:
        """Take over a copy of what `state_dict` returned, here or on another device."""
        self.state = {
            weight: {
                name: value.to(weight.device, torch.float32 if name == "step" else weight.dtype, copy=True)
                for name, value in one.items()
            }
            for weight, one in ((self.weights[number], one) for number, one in held.items())
        }


class SplitAdam(Adam):
    """Adam in the arithmetic of torch's fused kernel, cut into pieces. Nothing waits for the device."""

    @torch.no_grad()
    def step(self) -> None:
        """Update every weight that has a gradient."""
        due = self._due()
        torch._foreach_add_([state["step"] for _, _, state in due], 1)
        size = piece_size(sum(weight.numel() for weight, _, _ in due))
        for _, alike in groupby(sorted(due, key=lambda one: str(one[0].dtype)), key=lambda one: one[0].dtype):
            pieces = [
                piece
                for weight, gradient, state in alike
                for piece in _pieces(size, weight, gradient, state["exp_avg"], state["exp_avg_sq"], state["step"])
            ]
            values, gradients, averages, squares, steps = ([piece[part] for piece in pieces] for part in range(5))
            torch._fused_adam_(
                values,
                gradients,
                averages,
                squares,
                [],
                steps,
                lr=self.lr,
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=0.0,
                eps=EPS,
                amsgrad=False,
                maximize=False,
            )


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
