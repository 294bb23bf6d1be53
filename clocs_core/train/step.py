"""One training step: make views, embed them, compute the loss and its gradient, update the weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import cast
from weakref import WeakKeyDictionary

import attrs
import torch
from torch import Generator, Tensor, nn

from clocs_core.contracts.batches import Batch, Encode, Views
from clocs_core.contracts.offers import Perturb
from clocs_core.settings.sections import Autocast
from clocs_core.train.adam import Adam
from clocs_core.train.gradient_sums import summing_gradients
from clocs_core.train.normalise import Normalise
from clocs_core.train.norms import share_norms
from clocs_core.train.promises import learnable, loss_and_components_from, loss_from, perturbed_from, views_from
from clocs_core.train.ranks import Group, Part
from clocs_core.train.shares import GatheredEncode, equal_share, own_views, resting_norms

Network = Callable[[Tensor], Tensor]


class ContrastiveObjective(nn.Module):
    """Wraps a loss that is a pure function of embeddings and patient ids; its only state is the projector, if any."""

    def __init__(self, loss: Callable[[Tensor, Tensor], Tensor], projector: nn.Module | None = None) -> None:
        super().__init__()
        self.loss = loss
        self.projector = projector
        self._takes_ranks = "ranks" in arguments_of(loss)  # read once, not in every step

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views, ranks: Part | None = None) -> Tensor:
        """Compute the loss of one batch, or with `ranks` the share of this process in it."""
        return self.of(encode(views.signal), views.batch.patient, views.pairs, ranks)

    def of(self, z: Tensor, patient: Tensor, pairs: tuple[tuple[int, int], ...], ranks: Part | None = None) -> Tensor:
        """Compute the loss of embeddings (view, batch, dim), of all views at once or as the mean over `pairs`.

        ranks: the processes that share the batch. A loss that does not know of them gets the embeddings of all.
        """
        z = z if self.projector is None else _tensor(self.projector(z))
        if ranks is None:
            return self._compute(self.loss, z, patient, pairs)
        if self._takes_ranks:
            own = partial(cast("Callable[..., Tensor]", self.loss), ranks=ranks)  # its type has no such argument
            return self._compute(own, z, patient, pairs)
        z, patient = ranks.gather_with_gradient(z, 1), ranks.patients(patient)
        return equal_share(self._compute(self.loss, z, patient, pairs), {}, ranks)[0]

    @staticmethod
    def _compute(
        loss: Callable[[Tensor, Tensor], Tensor], z: Tensor, patient: Tensor, pairs: tuple[tuple[int, int], ...]
    ) -> Tensor:
        if not pairs:
            return loss_from(loss(z, patient), loss)
        each = [loss_from(loss(torch.stack((z[a], z[b])), patient), loss) for a, b in pairs]
        return torch.stack(each).mean()


def arguments_of(function: Callable[..., object] | None) -> Collection[str]:
    """Return the names of a function's arguments; none where Python cannot know them, as for some of C."""
    try:
        return inspect.signature(function).parameters if function else ()
    except (TypeError, ValueError):
        return ()


@attrs.frozen
class ViewMaker:
    """Turns a batch into the encoder's input: the method's views, perturbed in the order given, then normalised.

    read: the channels of each encoder as (start, stop), where encoders read different ones. Then the channels of an
    encoder are normalised by themselves, as they are where it is evaluated on them alone.
    """

    generate: Callable[[Batch, Generator], Views]
    perturbations: tuple[Perturb, ...]
    normalise: Normalise
    read: tuple[tuple[int, int | None], ...] = ()

    def __call__(self, batch: Batch, generator: Generator) -> Views:
        """Return the views of a batch, ready for the encoder."""
        views = views_from(self.generate(batch, generator), batch, self.generate)
        signal = views.signal  # (view, batch, channel, sample)
        if views.perturb == "one each":
            # Normalise all views by the scale of the clean one: normalised by its own, a signal that a perturbation
            # scaled down would look unchanged.
            signal = torch.cat([signal, *(self._perturbed(signal, one, generator) for one in self.perturbations)])
            return attrs.evolve(views, signal=self._normalised(signal, views.encoder_of_view, views.signal))
        clean, signal = (signal[:1], signal[1:]) if views.perturb == "but the first" else (signal[:0], signal)
        for perturb in self.perturbations:
            signal = self._perturbed(signal, perturb, generator)
        signal = torch.cat([clean, signal]) if len(clean) else signal
        return attrs.evolve(views, signal=self._normalised(signal, views.encoder_of_view))

    @staticmethod
    def _perturbed(signal: Tensor, perturb: Perturb, generator: Generator) -> Tensor:
        return perturbed_from(perturb(signal, generator), signal, perturb)

    def _normalised(self, signal: Tensor, encoder_of_view: tuple[int, ...], like: Tensor | None = None) -> Tensor:
        """Normalise views (view, batch, channel, sample): in each the channels of its encoder. like: a clean view."""
        if not self.read:
            return self.normalise(signal, like=like)
        own = signal.clone()
        for view, encoder in enumerate(encoder_of_view):
            channels = slice(*self.read[encoder])
            clean = None if like is None else like[0, :, channels]
            own[view, :, channels] = self.normalise(signal[view, :, channels], like=clean)
        return own


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
    return Encoding(encoders, encoder_of_view, per_view, autocast)(signal)


@attrs.frozen
class Encoding:
    """The `encode` of an objective: calls the encoder of each view, with `per_view` and `autocast` as above."""

    encoders: Sequence[nn.Module]
    encoder_of_view: tuple[int, ...] = ()
    per_view: bool = False
    autocast: Autocast = "none"

    def __call__(self, signal: Tensor) -> Tensor:
        """Embed views, as `encode` does."""
        return self._run(self.encoders, signal)

    def sequence(self, signal: Tensor) -> Tensor:
        """Encode views (view, batch, channel, sample) as (view, batch, time, width), with one call per encoder."""
        return self._run([cast("Network", encoder.sequence) for encoder in self.encoders], signal)

    def both(self, signal: Tensor) -> tuple[Tensor, Tensor]:
        """Return embeddings and sequences of views, in one pass if every encoder has `of_sequence`."""
        calls = [cast("Network | None", getattr(encoder, "of_sequence", None)) for encoder in self.encoders]
        found = [call for call in calls if call is not None]
        if len(found) < len(calls):
            return self(signal), self.sequence(signal)
        sequence = self.sequence(signal)
        return self._run(found, sequence), sequence

    def _run(self, calls: Sequence[Network], signal: Tensor) -> Tensor:
        if not signal.shape[1]:  # a process without instances; no encoder has to take an empty batch, as FFTs do not
            blank = signal.new_zeros((signal.shape[0], 1, *signal.shape[2:]))
            with resting_norms(self.encoders):
                return self._run(calls, blank)[:, :0]
        if self.autocast == "bf16":
            with torch.autocast(signal.device.type, torch.bfloat16):
                return _by_view(calls, self.encoder_of_view, signal, self.per_view).float()
        return _by_view(calls, self.encoder_of_view, signal, self.per_view)


def _by_view(calls: Sequence[Network], encoder_of_view: tuple[int, ...], signal: Tensor, per_view: bool) -> Tensor:
    """Give each view of (view, batch, channel, sample) to its function; return (view, batch, ...)."""
    shape = views, _ = signal.shape[:2]
    if per_view:
        which = encoder_of_view or (0,) * views
        return torch.stack([_tensor(calls[which[view]](signal[view])) for view in range(views)])
    if not any(encoder_of_view):
        return _tensor(_tensor(calls[0](signal.flatten(0, 1))).unflatten(0, shape))  # (view, batch, ...)
    parts: list[Tensor] = [signal] * views
    for number, call in enumerate(calls):
        mine = [view for view, which in enumerate(encoder_of_view) if which == number]
        if mine:
            made = _tensor(call(_views(signal, mine).flatten(0, 1))).unflatten(0, (len(mine), shape[1]))
            for row, view in zip(made, mine, strict=True):
                parts[view] = row
    return torch.stack(parts)  # (view, batch, ...)


def _views(signal: Tensor, chosen: Sequence[int]) -> Tensor:
    """Select views by number, in rising order. Indexing by a list would copy the list to the device at every step."""
    first, after = chosen[0], chosen[-1] + 1
    if after - first == len(chosen):
        return signal[first:after]
    return torch.stack([signal[view] for view in chosen])


@attrs.frozen
class _Asks:
    """The optional arguments that an objective has, found by their names."""

    generator: bool
    all_encoders: bool
    ranks: bool


_ASKED: WeakKeyDictionary[nn.Module, _Asks] = WeakKeyDictionary()  # signatures are read once, not in every step


def _asks(objective: nn.Module) -> _Asks:
    found = _ASKED.get(objective)
    if found is None:
        after = getattr(objective, "after_step", None)
        forward, after_step = arguments_of(objective.forward), arguments_of(after)
        found = _ASKED[objective] = _Asks("generator" in forward, "encoders" in after_step, "ranks" in forward)
    return found


def loss_of(
    objective: nn.Module, encode: Encode, views: Views, generator: Generator | None, ranks: Part | None = None
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Compute the loss of one batch, and the components that the objective names; with `ranks`, the shares in them.

    An objective gets the generator, and `ranks`, if its forward has an argument of this name.
    views: of the whole batch, in every process.
    """
    asks = _asks(objective)
    if ranks is None:
        found = objective(encode, views, generator=generator) if asks.generator else objective(encode, views)
        return loss_and_components_from(found, objective)
    more = {"generator": generator} if asks.generator else {}
    ranks = attrs.evolve(ranks, patient=views.batch.patient)
    if asks.ranks:
        return loss_and_components_from(objective(encode, own_views(views, ranks), ranks=ranks, **more), objective)
    found = objective(GatheredEncode(encode, ranks), views, **more)
    return equal_share(*loss_and_components_from(found, objective), ranks)


def share_statistics(encoders: nn.Module, objective: nn.Module, group: Group) -> None:
    """Let BatchNorm have the statistics of the rows of all processes, as if one process had them.

    An objective that does not know of ranks has the whole batch in every process: its statistics are right as they are.
    """
    share_norms(encoders, group)
    if _asks(objective).ranks:
        share_norms(objective, group)


def after_step(objective: nn.Module, encoders: Sequence[nn.Module]) -> None:
    """Call the objective's `after_step`, if it has one: with all encoders if it asks for them, else with the first."""
    call = getattr(objective, "after_step", None)
    if call is not None:
        with torch.no_grad():
            call(encoders if _asks(objective).all_encoders else encoders[0])


def train_step(
    encoders: Sequence[nn.Module],
    objective: nn.Module,
    optimiser: Adam | torch.optim.Optimizer,
    views: Views,
    per_view: bool = False,
    autocast: Autocast = "none",
    generator: Generator | None = None,
) -> Tensor:
    """Update the weights once. Return the loss, detached, on the device, without a host sync.

    generator: handed to an objective that asks for it.
    """
    embed = Encoding(encoders, views.encoder_of_view, per_view, autocast)
    return update(embed, objective, optimiser, views, generator)[0]


def update(
    embed: Encoding,
    objective: nn.Module,
    optimiser: Adam | torch.optim.Optimizer,
    views: Views,
    generator: Generator | None,
    group: Group | None = None,
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Update the weights once. Return the loss, detached, and the components that the objective names.

    group: the processes that share the batch. Each returns its share of the loss; all update by the sum of gradients.
    """
    ranks = None if group is None else group.divide(views.signal.shape[1])
    loss, components = loss_of(objective, embed, views, generator, ranks)
    optimiser.zero_grad()
    learnable(loss, objective)
    if group is None:
        loss.backward()
    else:
        assert isinstance(optimiser, Adam)
        with summing_gradients(group, optimiser.weights):
            loss.backward()
    optimiser.step()
    after_step(objective, embed.encoders)
    return loss.detach(), components


@attrs.frozen
class _Remembering(Encoding):
    """Keeps the embeddings of every call."""

    seen: list[Tensor] = attrs.field(factory=list)

    def __call__(self, signal: Tensor) -> Tensor:
        self.seen.append(super().__call__(signal))
        return self.seen[-1]

    def both(self, signal: Tensor) -> tuple[Tensor, Tensor]:
        z, sequence = super().both(signal)
        self.seen.append(z)
        return z, sequence


def validation_step(
    encoders: Sequence[nn.Module],
    objective: nn.Module,
    views: Views,
    autocast: Autocast = "none",
    generator: Generator | None = None,
    group: Group | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the loss, without an update, and the first embeddings (view, batch, dim) that the objective computes.

    group: the processes that share the batch; loss and embeddings are then the share of this one.
    """
    remember = _Remembering(encoders, views.encoder_of_view, autocast=autocast)
    ranks = None if group is None else group.divide(views.signal.shape[1])
    with torch.no_grad():
        loss, _ = loss_of(objective, remember, views, generator, ranks)
        if not remember.seen:
            remember(views.signal if ranks is None else views.signal[:, ranks.own])
        z = remember.seen[0]
    return loss, z


def _tensor(value: object) -> Tensor:
    assert isinstance(value, Tensor)  # nn.Module.__call__ is typed Any
    return value
