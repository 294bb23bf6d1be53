"""The state that training changes, and its progress."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import torch
from torch import Tensor, nn

from clocs_core.settings.sections import TrainSettings
from clocs_core.train.adam import Adam, SplitAdam, Update
from clocs_core.train.components import Components


@attrs.frozen
class Progress:
    """The progress of a run: epochs done, the best epoch, and whether training is over.

    best_loss: the lowest value of what epochs are compared by, which is the validation loss unless settings say more.
    """

    epoch: int = 0
    best_epoch: int = 0
    best_loss: float = float("inf")
    finished: bool = False

    def after(self, loss: float, settings: TrainSettings) -> Progress:
        """Return the progress after one more epoch. Better means a strictly lower loss, as in the released code."""
        epoch = self.epoch + 1
        better = loss < self.best_loss or settings.keep == "last"
        best_epoch, best_loss = (epoch, loss) if better else (self.best_epoch, self.best_loss)
        stale = settings.stops_early and epoch - best_epoch > settings.patience
        return Progress(epoch, best_epoch, best_loss, stale or epoch >= settings.epochs)


@attrs.define(eq=False)
class Learner:
    """The state that training changes: weights, optimiser, best weights so far and progress."""

    encoders: nn.ModuleList
    objective: nn.Module
    optimiser: Adam
    best: dict[str, Tensor]
    progress: Progress
    components: Components = attrs.field(factory=Components)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.encoders.parameters()).device

    def keep_best(self, weights: Mapping[str, Tensor] | None = None) -> None:
        """Store these weights as the best so far; without them, a copy of those that the encoders have now."""
        if weights is None:
            weights = {name: tensor.detach().clone() for name, tensor in self.encoders.state_dict().items()}
        self.best = dict(weights)


def start(
    encoders: nn.ModuleList,
    objective: nn.Module,
    learning_rate: float,
    update: Update = Update(),  # noqa: B008  frozen
) -> Learner:
    """Return an untrained learner with Adam over every parameter that requires a gradient."""
    parameters = {id(p): p for module in (encoders, objective) for p in module.parameters() if p.requires_grad}
    weights = list(parameters.values())
    adam = SplitAdam if all(one.is_cuda for one in weights) else Adam
    learner = Learner(encoders, objective, adam(weights, learning_rate, update), {}, Progress())
    learner.keep_best()
    return learner
