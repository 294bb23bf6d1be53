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
from clocs_core.train.checkpoint import Held, hold
from clocs_core.train.epochs import RunEpoch, Training, order_of
from clocs_core.train.learner import Learner
from clocs_core.train.validation import validate, weighted_mean
from clocs_core.turns import waiting

ScoreValidation: TypeAlias = Callable[[Tensor], float]
"""Embeddings or logits (view, n, dim) of the whole validation part, in its order and on the device -> a score."""

_Moment: TypeAlias = float | torch.cuda.Event

_SHORT = 1.0  # seconds of an epoch, up to which the next one begins before it is read
_NAN_VALIDATION = (
    "The validation loss of epoch {} is NaN, though the training loss is finite. Look at the validation recordings, or "
    "try a smaller `learning_rate`."
)


@attrs.frozen
class Extras:
    """Arguments of `train_epochs` that some callers have.

    spent: gets the time of `training` and of `validation`, which on a GPU is by the clock of the device.
    hold: gets the state at the end of an epoch, before the epoch is yielded. With it, the next epoch may begin before
    this one is read: a GPU then always has work. The weights are already changing when the caller gets the epoch.
    """

    spent: Stopwatch | None = None
    hold: Callable[[Held], None] | None = None


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

    extras, begun, ended = extras or Extras(), None, None
    while not learner.progress.finished:
        epoch = learner.progress.epoch + 1
        begun = begun or begin(epoch)
        following, held, problem = None, None, None
        if extras.hold is not None and epoch < training.settings.epochs and _goes_ahead(training, ended):
            held = hold(learner)
            try:
                following = begin(epoch + 1)
            except Exception as found:  # the caller gets this epoch first
                problem = found
        ended = _finish(learner, training, begun, held, ended, clock, score)
        if extras.spent is not None:
            extras.spent.add("training", max(0.0, ended.seconds - ended.validating))
            extras.spent.add("validation", ended.validating)
        if held is not None and extras.hold is not None:
            extras.hold(held)
            if learner.progress.finished:  # early: the next epoch is not wanted
                held.put_back(learner)
        yield ended.judged()  # takes the host a millisecond or two, in which the device has work
        if problem is not None and not learner.progress.finished:
            raise problem
        begun = following


@attrs.frozen(eq=False)
class _Begun:
    """An epoch and its validation that a device was told to compute, and may still compute."""

    began: float
    z: Tensor
    trained: _Moment
    validated: _Moment
    read: Tensor  # on the host: numbers, losses and what health follows from, one after the other
    parts: tuple[int, ...]  # length of each of them
    dtype: torch.dtype  # of losses
    components: tuple[str, ...]  # names of the last numbers
    there: _Moment  # from then on, `read` has its values


@attrs.frozen(eq=False)
class _Ended:
    """An epoch after which the learner has made progress. done: makes its record, given its `health`."""

    done: Callable[..., EpochDone]
    seconds: float
    validating: float  # seconds of them
    at: float  # by the clock
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
        parts = torch.stack(numbers), losses, measured
        # The copy is part of the device's work, so that nothing has to wait for what it is told to do after it.
        read = torch.cat([part.double() for part in parts]).to("cpu", non_blocking=True)
        lengths, there = tuple(len(part) for part in parts), _moment(training.store.device, clock)
    except torch.OutOfMemoryError:
        raise OutOfMemory(_too_large(training)) from None
    return _Begun(began, z, trained, validated, read, lengths, losses.dtype, tuple(learner.components.sums), there)


def _finish(
    learner: Learner,
    training: Training,
    begun: _Begun,
    held: Held | None,
    last: _Ended | None,
    clock: Callable[[], float],
    score: ScoreValidation | None,
) -> _Ended:
    """Wait for an epoch, and let the learner make progress.

    held: the state at its end, where the next epoch has begun. last: the epoch before it.
    """
    epoch = learner.progress.epoch + 1
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
        learner.keep_best(None if held is None else held.encoders())
    now = clock()
    lasted = now - (begun.began if last is None else max(begun.began, last.at))  # it may have begun before `last` ended
    validating = _seconds_between(begun.trained, begun.validated)
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
        components=dict(zip(begun.components, components, strict=True)),
    )
    return _Ended(done, lasted, validating, now, measured, begun.z.shape[2], train_loss, min(together, count))


def _goes_ahead(training: Training, last: _Ended | None) -> bool:
    """Return whether the next epoch begins before this one is read, given how long the last one took.

    Where early stopping ends the training, that epoch was in vain: a long one would keep the caller waiting.
    """
    short = last is not None and last.seconds < _SHORT
    return training.store.device.type == "cuda" and training.group is None and short


def _read(begun: _Begun) -> tuple[Tensor, Tensor, Tensor]:
    """Wait until the device has computed an epoch; return numbers, losses and what was measured, on the host.

    Other runs have their turn meanwhile.
    """
    if isinstance(begun.there, torch.cuda.Event):
        with waiting():
            begun.there.synchronize()
    numbers, losses, measured = begun.read.split(begun.parts)
    return numbers, losses.to(begun.dtype), measured


def _moment(device: torch.device, clock: Callable[[], float]) -> _Moment:
    """Return the time now; on a GPU, an event in its queue, since the host is far ahead and does not wait."""
    if device.type != "cuda":
        return clock()
    event = torch.cuda.Event(enable_timing=True, blocking=True)  # whoever waits for it leaves the core to others
    event.record(torch.cuda.current_stream(device))
    return event


def _seconds_between(before: _Moment, after: _Moment) -> float:
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
