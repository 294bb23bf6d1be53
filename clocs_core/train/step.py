"""One training step: make views, embed them, compute the loss and its gradient, update the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs
import torch
from torch import Generator, Tensor, nn

from clocs_core.contracts.batches import Batch, Views
from clocs_core.settings.sections import Autocast
from clocs_core.train.adam import Adam
from clocs_core.train.normalise import Normalise

Perturb = Callable[[Tensor, Generator], Tensor]


class ContrastiveObjective(nn.Module):
    """Wraps a loss that is a pure function of embeddings and patient ids; its only state is the projector, if any."""

    def __init__(self, loss: Callable[[Tensor, Tensor], Tensor], projector: nn.Module | None = None) -> None:
        super().__init__()
        self.loss = loss
        self.projector = projector

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views) -> Tensor:
        """Compute the loss of one batch."""
        return self.of(encode(views.signal), views.batch.patient, views.pairs)

    def of(self, z: Tensor, patient: Tensor, pairs: tuple[tuple[int, int], ...]) -> Tensor:
        """Compute the loss of embeddings (view, batch, dim), of all views at once or as the mean over `pairs`."""
        z = z if self.projector is None else _tensor(self.projector(z))
        if not pairs:
            return self.loss(z, patient)
        return torch.stack([self.loss(torch.stack((z[a], z[b])), patient) for a, b in pairs]).mean()


@attrs.frozen
class ViewMaker:
    """Turns a batch into the encoder's input: the method's views, perturbed in the order given, then normalised."""

    generate: Callable[[Batch, Generator], Views]
    perturbations: tuple[Perturb, ...]
    normalise: Normalise

    def __call__(self, batch: Batch, generator: Generator) -> Views:
        """Return the views of a batch, ready for the encoder."""
        views = self.generate(batch, generator)
        signal = views.signal  # (view, batch, channel, sample)
        if views.perturb == "one each":
            # Normalise all views by the scale of the clean one: normalised by its own, a signal that a perturbation
            # scaled down would look unchanged.
            signal = torch.cat([signal, *(perturb(signal, generator) for perturb in self.perturbations)])
            return attrs.evolve(views, signal=self.normalise(signal, like=views.signal))
        clean, signal = (signal[:1], signal[1:]) if views.perturb == "but the first" else (signal[:0], signal)
        for perturb in self.perturbations:
            signal = perturb(signal, generator)
        signal = torch.cat([clean, signal]) if len(clean) else signal
        return attrs.evolve(views, signal=self.normalise(signal))


def encode(
    encoders: Sequence[nn.Module],
    encoder_of_view: tuple[int, ...],
    signal: Tensor,
    per_view: bool = False,
    autocast: Autocast = "none",
) -> Tensor:
    """Embed views (view, batch, channel, sample) as (view, batch, dim), with one call per encoder on all its views.

    per_view: make one call per view instead, so that BatchNorm sees the views one by one.
    autocast: with bf16, the encoders run under autocast; embeddings are float32 all the same.
    """
    if autocast == "bf16":
        with torch.autocast(signal.device.type, torch.bfloat16):
            return encode(encoders, encoder_of_view, signal, per_view).float()
    views, batch = signal.shape[:2]
    if per_view:
        which = encoder_of_view or (0,) * views
        return torch.stack([_tensor(encoders[which[view]](signal[view])) for view in range(views)])
    if not any(encoder_of_view):
        return _tensor(encoders[0](signal.flatten(0, 1))).view(views, batch, -1)  # (view, batch, dim)
    parts: list[Tensor] = [signal] * views
    for number, encoder in enumerate(encoders):
        mine = [view for view, which in enumerate(encoder_of_view) if which == number]
        if mine:
            z = _tensor(encoder(_views(signal, mine).flatten(0, 1))).view(len(mine), batch, -1)
            for row, view in zip(z, mine, strict=True):
                parts[view] = row
    return torch.stack(parts)  # (view, batch, dim)


def _views(signal: Tensor, chosen: Sequence[int]) -> Tensor:
    """Select views by number, in rising order. Indexing by a list would copy the list to the device at every step."""
    first, after = chosen[0], chosen[-1] + 1
    if after - first == len(chosen):
        return signal[first:after]
    return torch.stack([signal[view] for view in chosen])


def train_step(
    encoders: Sequence[nn.Module],
    objective: nn.Module,
    optimiser: Adam | torch.optim.Optimizer,
    views: Views,
    per_view: bool = False,
    autocast: Autocast = "none",
) -> Tensor:
    """Update the weights once. Return the loss, detached, on the device, without a host sync."""
    embed = partial(encode, encoders, views.encoder_of_view, per_view=per_view, autocast=autocast)
    loss = _tensor(objective(embed, views))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    after_step = getattr(objective, "after_step", None)
    if after_step is not None:
        with torch.no_grad():
            after_step(encoders[0])
    return loss.detach()


def validation_step(
    encoders: Sequence[nn.Module], objective: nn.Module, views: Views, autocast: Autocast = "none"
) -> tuple[Tensor, Tensor]:
    """Return the loss, without an update, and the first embeddings (view, batch, dim) that the objective computes."""
    seen: list[Tensor] = []

    def remember(signal: Tensor) -> Tensor:
        seen.append(encode(encoders, views.encoder_of_view, signal, autocast=autocast))
        return seen[-1]

    with torch.no_grad():
        loss = _tensor(objective(remember, views))
        z = seen[0] if seen else remember(views.signal)
    return loss, z


def _tensor(value: object) -> Tensor:
    assert isinstance(value, Tensor)  # nn.Module.__call__ is typed Any
    return value
