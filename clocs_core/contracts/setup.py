"""The facts that an objective is built from, and the other offers that it builds on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import attrs

from clocs_core.contracts.offers import Loss, Objective, SignalFacts
from clocs_core.contracts.records import Column, Task

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


@attrs.frozen(kw_only=True, eq=False)
class Setup:
    """The facts that an objective is built from. New fields may be added here without breaking plugins.

    encoder: the first encoder with its initial weights. It belongs to core; an objective may keep a copy.
    encoders: all encoders, in the order of `Views.encoder_of_view`; the same holds for them.
    perturbations: names of the perturbations of the views, in order.
    signals: unit, rate, length and channels of the signals.
    columns: the columns in `views.batch.about`, as the data set declares them, with the mean and deviation of numbers.
    steps_per_epoch, steps: updates in an epoch, and in all epochs; a run that stops early makes fewer.
    device: the device that the run trains on. Core moves the module there after `build`.
    projector: from embeddings (view, batch, embedding_dim) to what the loss compares, where the setting `projector`
    asks for one. An objective that takes it up as a part of itself has it trained and saved; others are refused.
    parts: the offers that the objective names in `objectives` and `losses`.
    autocast: `bf16` where the run computes networks in bf16. Embeddings and sequences come in float32 all the same; an
    objective may compute large networks of its own under `torch.autocast`, and its losses in float32.
    """

    encoder: nn.Module
    embedding_dim: int
    task: Task
    perturbations: tuple[str, ...] = ()
    encoders: tuple[nn.Module, ...] = attrs.field(default=attrs.Factory(lambda self: (self.encoder,), takes_self=True))
    signals: SignalFacts = attrs.field(factory=SignalFacts)
    columns: tuple[Column, ...] = ()
    steps_per_epoch: int = 1
    steps: int = 1
    device: torch.device | None = None
    projector: nn.Module | None = None
    parts: tuple[Objective | Loss, ...] = ()
    autocast: Literal["none", "bf16"] = "none"

    def objective(self, name: str, **options: Any) -> nn.Module:
        """Build another objective from these facts, with these options. The own offer names it in `objectives`.

        It becomes a part of the own module, so that core trains and saves it.
        """
        part = self._part(name, "objective")
        made: nn.Module = part.build(part.options(**options), self)
        return made

    def loss(self, name: str, **options: Any) -> Callable[[Tensor, Tensor], Tensor]:
        """Build a loss of embeddings and patients, with these options. The own offer names it in `losses`."""
        part = self._part(name, "loss")
        made: Callable[[Tensor, Tensor], Tensor] = part.build(part.options(**options))
        return made

    def _part(self, name: str, kind: str) -> Any:
        for one in self.parts:
            if (one.kind, one.name) == (kind, name.rpartition(":")[2]):  # its plugin may stand in front
                return one
        field = "losses" if kind == "loss" else "objectives"
        raise ValueError(f"the {kind} {name!r} is not at hand: the offer must name it in `{field}={(name,)}`")
