"""The pre-training loop: a generator that yields one EpochDone per epoch. The caller saves, shows and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import torch
from torch import Tensor, nn

from clocs_core import seeds
from clocs_core.data.store import Instances, Store
from clocs_core.errors import NonFiniteLoss
from clocs_core.extend.events import EpochDone
from clocs_core.settings import TrainSettings
from clocs_core.train import health
from clocs_core.train.step import ViewMaker, train_step, validation_step

__all__ = ["Learner", "Progress", "pretrain", "start"]


@attrs.frozen
class Progress:
    """How far a run has come: epochs done, the best of them by validation loss, and whether it is over."""

    epoch: int = 0
    best_epoch: int = 0
    best_loss: float = float("inf")
    finished: bool = False

    def after(self, loss: float, settings: TrainSettings) -> Progress:
        """Progress after one more epoch with this validation loss. Better means strictly lower, as released."""
        epoch = self.epoch + 1
        best_epoch, best_loss = (epoch, loss) if loss < self.best_loss else (self.best_epoch, self.best_loss)
        stale = epoch - best_epoch
        return Progress(epoch, best_epoch, best_loss, stale > settings.patience or epoch >= settings.epochs)


@attrs.define(eq=False)
class Learner:
    """All that training changes: the weights, the optimiser, the best weights so far and the progress."""

    encoders: nn.ModuleList
    objective: nn.Module
    optimiser: torch.optim.Optimizer
    best: dict[str, Tensor]
    progress: Progress

    def keep_best(self) -> None:
        """Remember the encoders' weights as the best so far."""
        self.best = {name: tensor.detach().clone() for name, tensor in self.encoders.state_dict().items()}


def start(encoders: nn.ModuleList, objective: nn.Module, learning_rate: float) -> Learner:
    """A learner that has not learnt yet, with Adam over every parameter that wants a gradient."""
    parameters = {id(p): p for module in (encoders, objective) for p in module.parameters() if p.requires_grad}
    optimiser = torch.optim.Adam(list(parameters.values()), lr=learning_rate)
    learner = Learner(encoders, objective, optimiser, {}, Progress())
    learner.keep_best()
    return learner


def pretrain(
    learner: Learner,
    store: Store,
    make_views: ViewMaker,
    train: Instances,
    validation: Instances,
    settings: TrainSettings,
    seed: int,
    clock: Callable[[], float],
    tick: Callable[[int, int], None],
) -> Iterator[EpochDone]:
    """Train until early stopping or the last epoch, changing `learner`; go on from its progress.

    Every random number of an epoch follows from (seed, epoch) alone, so the position is all that a resumed run
    needs to go on exactly. `tick(step, steps)` is called after every step; nothing in an epoch waits for the device.
    """
    while not learner.progress.finished:
        began, epoch = clock(), learner.progress.epoch + 1
        order = torch.randperm(len(train), generator=seeds.generator(torch.device("cpu"), seed, "order", epoch))
        losses = _train_epoch(learner, store, make_views, train, order, settings, seed, epoch, tick)
        means = _weighted_mean(losses, len(train), settings.batch_size)
        validation_loss, z, patient = _validate(learner, store, make_views, validation, settings.batch_size, seed)
        train_loss, held_out = torch.stack([means, validation_loss]).tolist()  # sync point: once per epoch
        _refuse_non_finite(losses, store, train, order, settings.batch_size, epoch)
        if held_out != held_out:
            raise NonFiniteLoss(f"The validation loss of epoch {epoch} is not a number, though the training loss is.")
        before, learner.progress = learner.progress, learner.progress.after(held_out, settings)
        improved = learner.progress.best_epoch != before.best_epoch
        if improved:
            learner.keep_best()
        yield EpochDone(
            epoch=epoch,
            losses=losses,
            train_loss=train_loss,
            validation_loss=held_out,
            health=health.measure(z, patient, train_loss, min(settings.batch_size, len(train))),
            improved=improved,
            best_epoch=learner.progress.best_epoch,
            instances=len(train),
            seconds=clock() - began,
            last=learner.progress.finished,
        )


def _train_epoch(
    learner: Learner,
    store: Store,
    make_views: ViewMaker,
    train: Instances,
    order: Tensor,
    settings: TrainSettings,
    seed: int,
    epoch: int,
    tick: Callable[[int, int], None],
) -> Tensor:
    learner.encoders.train()
    learner.objective.train()
    torch.manual_seed(seeds.derive(seed, "dropout", epoch))  # dropout draws from torch's own generators
    generator = seeds.generator(store.device, seed, "views", epoch)
    batches = order.to(store.device).split(settings.batch_size)
    losses = []
    for step, rows in enumerate(batches, start=1):
        views = make_views(store.gather(train, rows), generator)
        losses.append(
            train_step(list(learner.encoders), learner.objective, learner.optimiser, views, settings.per_view)
        )
        tick(step, len(batches))
    return torch.stack(losses)  # (step,)


def _validate(
    learner: Learner, store: Store, make_views: ViewMaker, validation: Instances, batch_size: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The mean loss, and embeddings (view, n, dim) with their patients (n,), of the first instances."""
    learner.encoders.eval()
    learner.objective.eval()
    # The same generator every epoch, or early stopping compares noise.
    generator = seeds.generator(store.device, seed, "validation views")
    losses, embeddings, patients = [], [], []
    for number, rows in enumerate(torch.arange(len(validation), device=store.device).split(batch_size)):
        views = make_views(store.gather(validation, rows), generator)
        loss, z = validation_step(list(learner.encoders), learner.objective, views)
        losses.append(loss)
        if number * batch_size < health.MEASURED:
            embeddings.append(z)
            patients.append(views.batch.patient)
    mean = _weighted_mean(torch.stack(losses), len(validation), batch_size)
    return mean, torch.cat(embeddings, dim=1), torch.cat(patients)


def _weighted_mean(losses: Tensor, instances: int, batch_size: int) -> Tensor:
    """Mean over instances: the last, ragged batch counts for what it holds."""
    full = torch.full_like(losses, batch_size)
    full[-1] = instances - batch_size * (len(losses) - 1)
    return (losses * full).sum() / instances


def _refuse_non_finite(
    losses: Tensor, store: Store, train: Instances, order: Tensor, batch_size: int, epoch: int
) -> None:
    bad = (~losses.isfinite()).nonzero().flatten().tolist()
    if not bad:
        return
    rows = order[bad[0] * batch_size : (bad[0] + 1) * batch_size].to(store.device)
    numbers = store.record[train.frame[rows, 0]].unique().tolist()
    names = [store.records[number] for number in numbers]
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    raise NonFiniteLoss(
        f"The loss is not finite at step {bad[0] + 1} of epoch {epoch}; its batch holds the records {shown}. "
        "Look at them, or try a smaller learning rate."
    )
