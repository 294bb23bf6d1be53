"""Adam and AdamW: each weight by itself, or all weights in two launches that fill a GPU.

Values and state equal those of torch.optim, so a checkpoint can move between devices. The first optimiser of
torch.optim imports torch's compiler, which takes longer than a small training: these do not.

torch's fused update gives each block of threads 65,536 values. The paper's encoder has 48,000 weights, 41,000 of them
in one matrix, so one block works while the others wait: 22 µs of a step of 200. Here each matrix is cut into pieces
and each piece gets a block. Large networks get larger pieces, so that there are never more than some hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

import attrs
import torch
from torch import Tensor

from clocs_core.settings.sections import LearningSettings
from clocs_core.train.schedule import Schedule

PIECE = 4096
"""Values that a block of threads updates; at this size the pieces of the paper's encoder fit into one launch."""
MOST_PIECES = 256
"""Pieces of all weights, beside one for each weight: enough to fill a GPU. Each piece costs host and launch time."""


BETAS, EPS = (0.9, 0.999), 1e-8
"""Decay of the two averages, and what is added to the root of the second: torch's defaults, and the paper's."""


@attrs.frozen
class Update:
    """How weights are updated beside Adam's own arithmetic; the default changes nothing.

    weight_decay: as in AdamW: a weight shrinks by this share, times the learning rate, before each step. Weights of one
    dimension or none (biases, scales of norms) do not shrink.
    clip: length to which the gradient of all weights together is shortened, where it is longer.
    """

    schedule: Schedule = attrs.field(factory=Schedule)
    weight_decay: float = 0.0
    clip: float | None = None

    @classmethod
    def of(cls, settings: LearningSettings) -> Update:
        """Return the update that settings ask for."""
        return cls(Schedule(settings.schedule, settings.warm_up), settings.decay, settings.clip)


class Adam:
    """Adam, or AdamW, without amsgrad, in the arithmetic of torch.optim on a CPU, to the last bit.

    The fused update would save 1 ms of a step of 43 (benchmarks/cpu_step.py), but it rounds a tenth of the weights
    differently after 100 steps: not worth scores that differ in their last digits from all earlier ones.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, update: Update = Update()) -> None:  # noqa: B008  frozen
        self.weights, self.lr, self.update = list(params), lr, update
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self.factor: dict[Tensor, float] = {}  # of the learning rate of single weights; 1 where a weight is not there
        device = self.weights[0].device if self.weights else torch.device("cpu")
        self.done = torch.zeros((), dtype=torch.float64, device=device)  # steps before the next one
        self.steps = 0  # of the whole training

    def begin(self, done: int, steps: int) -> None:
        """Set the count of steps to `done` of `steps`. Schedules follow from it: a resumed run needs no other state.

        A captured step reads and raises the count on the device.
        """
        self.done.fill_(done)
        self.steps = steps

    def rate(self) -> float | Tensor:
        """Return the learning rate of the next step: a number where it is always the same, else on the device."""
        if self.update.schedule.is_constant:
            return self.lr
        assert self.steps  # `begin` was called
        return self.update.schedule.share(self.done, self.steps) * self.lr

    def _prepare(self) -> float | Tensor:
        """Clip the gradients, count the step, and return its learning rate. Nothing waits for the device."""
        if self.update.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.weights, self.update.clip)
        rate = self.rate()
        if isinstance(rate, Tensor):
            self.done += 1
        return rate

    def _decay_of(self, weight: Tensor) -> float:
        return self.update.weight_decay if weight.ndim > 1 else 0.0

    def zero_grad(self) -> None:
        """Set all gradients to None."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update every weight that has a gradient."""
        prepared = float(self._prepare())
        for weight, gradient, state in self._due():
            rate, decay = prepared * self.factor.get(weight, 1.0), self._decay_of(weight)
            if decay:
                weight.mul_(1 - rate * decay)
            state["step"] += 1
            step = state["step"].item()
            state["exp_avg"].lerp_(gradient, 1 - BETAS[0])
            state["exp_avg_sq"].mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
            root = (state["exp_avg_sq"].sqrt() / (1 - BETAS[1] ** step) ** 0.5).add_(EPS)
            weight.addcdiv_(state["exp_avg"], root, value=-rate / (1 - BETAS[0] ** step))

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
        rate = self._prepare()
        due = self._due()
        torch._foreach_add_([state["step"] for _, _, state in due], 1)
        size = piece_size(sum(weight.numel() for weight, _, _ in due))
        for (_, decay, factor), alike in groupby(sorted(due, key=self._launch), key=self._launch):
            pieces = [
                piece
                for weight, gradient, state in alike
                for piece in _pieces(size, weight, gradient, state["exp_avg"], state["exp_avg_sq"], state["step"])
            ]
            values, gradients, averages, squares, steps = ([piece[part] for piece in pieces] for part in range(5))
            lr = rate if factor == 1.0 else rate * factor
            update = torch._fused_adamw_ if decay else torch._fused_adam_
            update(
                values,
                gradients,
                averages,
                squares,
                [],
                steps,
                lr=lr.float() if isinstance(lr, Tensor) else lr,
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=decay,
                eps=EPS,
                amsgrad=False,
                maximize=False,
            )

    def _launch(self, due: tuple[Tensor, Tensor, dict[str, Tensor]]) -> tuple[str, float, float]:
        """Return what the weights of one launch have in common: type, decay, and factor of the learning rate."""
        weight = due[0]
        return str(weight.dtype), self._decay_of(weight), self.factor.get(weight, 1.0)


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
