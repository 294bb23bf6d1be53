"""The training loop: a generator that yields one EpochDone per epoch. The caller saves, shows and reports.

Fine-tuning uses it too: there a network is an encoder with a head, and logits take the place of embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import attrs
import torch
from torch import Tensor

from clocs_core.contracts.events import EpochDone
from clocs_core.errors import NonFiniteLoss, OutOfMemory
from clocs_core.progress import Stopwatch, Tick
from clocs_core.train import health
from clocs_core.train.agreement import agree_on_epoch
from clocs_core.train.epochs import RunEpoch, Training, order_of
from clocs_core.train.learner import Learner
from clocs_core.train.validation import validate, weighted_mean
from clocs_core.turns import waiting

ScoreValidation: TypeAlias = Callable[[Tensor], float]
"""Embeddings or logits (view, n, dim) of the whole validation part, in its order and on the device -> a score."""

_SHORT = 1.0  # seconds of an epoch, up to which the next one begins before the last one is saved
_NAN_VALIDATION = (
    "The validation loss of epoch {} is NaN, though the training loss is finite. Look at the validation recordings, or "
    "try a smaller `learning_rate`."
)


@attrs.frozen
class Extras:
    """Arguments of `train_epochs` that some callers have.

    spent: gets the time of `training` and of `validation`, which on a GPU is by the clock of the device.
    hold: keeps what the caller needs of the learner as it is at the end of an epoch. With it, the next one may be under
    way when the caller gets the last one: a GPU then has work while the caller saves and shows.
    """

    spent: Stopwatch | None = None
    hold: Callable[[], None] | None = None


def train_epochs(
    learner: Learner,
    training: Training,
    run_epoch: RunEpoch,
    clock: Callable[[], float],
    tick: Tick,
    score: ScoreValidation | None = None,
    extras: Extras | None = None,
) -> Iterator[EpochDone]:
    """Train `learner` from its progress until early stopping or the last epoch.

    Every random number of an epoch follows from (seed, epoch) alone, so a resumed run needs only the epoch number to
    continue exactly. `tick` is called as steps are started; an epoch causes no host sync.
    score: scores the results of the validation pass once per epoch; it does not affect training.
    """

    def begin(epoch: int) -> _Begun:
        return _begin(learner, training, run_epoch, epoch, clock, tick, score is not None)

    extras, begun = extras or Extras(), None
    while not learner.progress.finished:
        epoch = learner.progress.epoch + 1
        ended = _finish(learner, training, begun or begin(epoch), epoch, clock, score, extras.spent)
        begun, problem = None, None
        if extras.hold is not None:
            extras.hold()
            if not learner.progress.finished and _goes_ahead(training, ended.seconds):
                try:
                    begun = begin(epoch + 1)
                except Exception as found:  # the caller gets the last epoch first
                    problem = found
        yield ended.judged()  # takes the host a millisecond or two, in which the device has work
        if problem is not None:
            raise problem


@attrs.frozen(eq=False)
class _Begun:
    """An epoch and its validation that a device was told to compute, and may still compute."""

    began: float
    losses: Tensor  # (step,)
    z: Tensor
    measured: Tensor  # what health follows from
    trained: float | torch.cuda.Event
    validated: float | torch.cuda.Event
    numbers: list[Tensor]  # training and validation loss, whether all are finite, components


@attrs.frozen(eq=False)
class _Ended:
    """An epoch after which the learner has made progress. done: makes its record, given its `health`."""

    done: Callable[..., EpochDone]
    seconds: float
    measured: Tensor  # on the host
    dim: int
    train_loss: float
    batch_size: int

    def judged(self) -> EpochDone:
        """Judge the health of the epoch, and return it with all the rest."""
        return self.done(health=health.judge(self.measured, self.dim, self.train_loss, self.batch_size))


def _begin(
    learner: Learner,
    training: Training,
    run_epoch: RunEpoch,
    epoch: int,
    clock: Callable[[], float],
    tick: Tick,
    whole: bool,
) -> _Begun:
    """Train for an epoch and validate. whole: as in `validate`."""
    settings, group, count = training.settings, training.group, len(training.train)
    began = clock()
    try:
        losses = run_epoch(learner, training, epoch, tick)
        losses = losses if group is None else agree_on_epoch(learner, losses, group)
        means = weighted_mean(losses, count, settings.contrast_batch or settings.batch_size)
        trained = _moment(training.store.device, clock)
        validation_loss, z, patient = validate(run_epoch, learner, training, whole=whole)
        measured = health.measure(z, patient)
        validated = _moment(training.store.device, clock)
        numbers = [means, validation_loss, losses.isfinite().all(), *learner.components.means(count)]
    except torch.OutOfMemoryError:
        raise OutOfMemory(_too_large(training)) from None
    return _Begun(began, losses, z, measured, trained, validated, numbers)


def _finish(
    learner: Learner,
    training: Training,
    begun: _Begun,
    epoch: int,
    clock: Callable[[], float],
    score: ScoreValidation | None,
    spent: Stopwatch | None,
) -> _Ended:
    """Wait for an epoch, and let the learner make progress."""
    settings, count = training.settings, len(training.train)
    together = settings.contrast_batch or settings.batch_size  # instances per loss
    try:
        numbers, losses, measured = _read(begun)  # sync point: once per epoch
    except torch.OutOfMemoryError:
        raise OutOfMemory(_too_large(training)) from None
    train_loss, held_out, good, *components = numbers.tolist()
    if not good:
        _refuse_non_finite(losses, training, epoch, together)
    if held_out != held_out:
        raise NonFiniteLoss(_NAN_VALIDATION.format(epoch))
    compared = -_separation(measured, epoch) if settings.keep == "separation" else held_out
    before, learner.progress = learner.progress, learner.progress.after(compared, settings)
    improved = learner.progress.best_epoch != before.best_epoch
    if improved:
        learner.keep_best()
    lasted, validating = clock() - begun.began, _seconds_between(begun.trained, begun.validated)
    if spent is not None:
        spent.add("training", lasted - validating)
        spent.add("validation", validating)
    done = partial(
        EpochDone,
        epoch=epoch,
        losses=losses,
        train_loss=train_loss,
        validation_loss=held_out,
        validation_score=None if score is None else score(begun.z),
        improved=improved,
        best_epoch=learner.progress.best_epoch,
        instances=count,
        seconds=lasted,
        last=learner.progress.finished,
        components=dict(zip(learner.components.sums, components, strict=True)),
    )
    return _Ended(done, lasted, measured, begun.z.shape[2], train_loss, min(together, count))


def _goes_ahead(training: Training, lasted: float) -> bool:
    """Return whether the next epoch begins before the caller gets the last one, which `lasted` so many seconds.

    Where the host would wait for the device, a long epoch would delay what the caller saves.
    """
    return training.store.device.type == "cuda" and training.group is None and lasted < _SHORT


def _read(begun: _Begun) -> tuple[Tensor, Tensor, Tensor]:
    """Read numbers, losses and what was measured from the device, in one piece; other runs have their turn meanwhile.

    It takes until the device has done all its work.
    """
    numbers = torch.stack(begun.numbers)
    parts = numbers, begun.losses, begun.measured
    with waiting():
        read = torch.cat([part.double() for part in parts]).cpu()
    found = read.split([len(part) for part in parts])
    return found[0], found[1].to(begun.losses.dtype), found[2]


def _moment(device: torch.device, clock: Callable[[], float]) -> float | torch.cuda.Event:
    """Return the time now; on a GPU, an event in its queue, since the host is far ahead and does not wait."""
    if device.type != "cuda":
        return clock()
    event = torch.cuda.Event(enable_timing=True)
    event.record(torch.cuda.current_stream(device))
    return event


def _seconds_between(before: float | torch.cuda.Event, after: float | torch.cuda.Event) -> float:
    """Return the time between two moments of one kind. Events must be over."""
    if isinstance(before, torch.cuda.Event) and isinstance(after, torch.cuda.Event):
        return float(before.elapsed_time(after)) / 1000
    assert not isinstance(before, torch.cuda.Event)
    assert not isinstance(after, torch.cuda.Event)
    return after - before


def _separation(measured: Tensor, epoch: int) -> float:
    """Return how much nearer embeddings of one patient are than those of different ones; 0 where all are the same."""
    same, other = measured[:2].tolist()
    found: float = same - other
    if found != found:
        raise NonFiniteLoss(
            f"The separation of validation patients is not defined in epoch {epoch}: it needs two patients, and two "
            "views or instances of one. Use `keep='loss'` or `keep='last'`."
        )
    return found


def _refuse_non_finite(losses: Tensor, training: Training, epoch: int, batch_size: int) -> None:
    bad = (~losses.isfinite()).nonzero().flatten().tolist()
    store = training.store
    rows = order_of(training, epoch)[bad[0] * batch_size : (bad[0] + 1) * batch_size].to(store.device)
    numbers = store.record[training.train.frame[rows, 0]].unique().tolist()
    names = [store.records[number] for number in numbers]
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    raise NonFiniteLoss(
        f"The loss is not finite at step {bad[0] + 1} of epoch {epoch}; its batch holds the records {shown}. "
        "Look at them, or try a smaller learning rate."
    )


def _too_large(training: Training) -> str:
    size = training.settings.batch_size
    keep = training.settings.contrast_batch or size
    return (
        f"The GPU has too little memory for batches of {size} instances. Try `batch_size={max(1, size // 2)}`; "
        f"with `contrast_batch={keep}` beside it, as many instances are contrasted as before."
    )
