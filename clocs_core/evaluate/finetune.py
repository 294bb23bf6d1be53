"""Fine-tuning: a new linear head on the encoder's representation, and all weights train on the labels.

"the pre-trained parameters are used as an initialization for training on the downstream supervised task" (section 5.3);
"During training on the downstream tasks, the final layer was introduced" (appendix C). It is training by the same
loop and the same step as pre-training: the one network is encoder and head together, the one view is the frame, and
the loss is a pure function of logits and labels.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from clocs_core import seeds
from clocs_core.data.batches import Batch, Views
from clocs_core.data.records import Part, Task
from clocs_core.errors import OutOfMemory
from clocs_core.evaluate.bench import Bench, take
from clocs_core.evaluate.curves import CurvePoint, curve_beside, point_of, read_curve, save_curve
from clocs_core.evaluate.features import embed
from clocs_core.evaluate.linear import Predictions
from clocs_core.evaluate.statistics import ScoreFunction
from clocs_core.extend.events import EpochDone
from clocs_core.settings import TrainSettings
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.epochs import RunEpoch, Tick, Training
from clocs_core.train.label_loss import LabelLoss, label_loss
from clocs_core.train.learner import Learner, Progress, start
from clocs_core.train.pretrain import ScoreValidation, pretrain
from clocs_core.train.step import ViewMaker

__all__ = ["FineTuned", "LabelObjective", "build_classifier", "fine_tune", "frame_as_view", "predict", "probability_of"]

_SAVE_EVERY = 30.0  # seconds between checkpoints: what a kill costs at most, where an epoch is shorter


class LabelObjective(nn.Module):
    """The loss of logits by the label of their frame, as an objective without state."""

    def __init__(self, loss: LabelLoss) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views) -> Tensor:
        """The loss of one batch, whose instances all have a label."""
        assert views.batch.label is not None  # a bench is made of labelled frames
        return self.loss(encode(views.signal), views.batch.label)  # of logits (view, batch, class)


def build_classifier(encoder: nn.Module, embedding_dim: int, classes: int, seed: int) -> nn.Sequential:
    """The encoder with a new linear head behind it: signals (n, channel, sample) to logits (n, class).

    The head follows from the seed alone, so that every init begins with the same one.
    """
    torch.manual_seed(seeds.derive(seed, "head"))  # layers draw their weights from torch's own generator
    return nn.Sequential(OrderedDict(encoder=encoder, head=nn.Linear(embedding_dim, classes)))


def frame_as_view(batch: Batch, _generator: Generator) -> Views:
    """The frame as the only view; nothing is drawn and nothing is copied."""
    return Views(signal=batch.signal.transpose(0, 1), batch=batch)  # (view, batch, channel, sample)


@attrs.frozen(eq=False)
class FineTuned:
    """A classifier with the weights of its best epoch, what it took, and what it predicts of the scored part.

    curve: every epoch, also those of before a kill; it has scores of the validation part where a metric was given.
    """

    classifier: nn.Module
    progress: Progress
    steps: int
    predictions: Predictions
    curve: tuple[CurvePoint, ...] = ()


def fine_tune(
    encoder: nn.Module,
    embedding_dim: int,
    bench: Bench,
    rows: NDArray[np.int64],
    settings: TrainSettings,
    seed: int,
    scored: Part,
    run_epoch: RunEpoch,
    clock: Callable[[], float],
    tick: Tick,
    *,
    epoch_done: Callable[[EpochDone], None] = lambda done: None,
    checkpoint: Path | None = None,
    score: ScoreFunction | None = None,
) -> FineTuned:
    """Train encoder and head, changing them, on some rows of the labelled training frames; predict a part.

    The validation part is used whole, for early stopping. `encoder` is on the bench's device.
    checkpoint: a file to go on from, and to leave one in now and then, with the curve beside it; the caller removes it.
    score: what the validation part is scored by after every epoch, for the curve; stopping goes by the loss alone.
    """
    device, task = bench.store.device, bench.task
    classifier = build_classifier(encoder, embedding_dim, len(task.classes), seed).to(device)
    training = Training(
        store=bench.store,
        make_views=ViewMaker(frame_as_view, (), bench.normalise),
        train=take(bench.parts["train"], torch.from_numpy(rows).to(device)),
        validation=bench.parts["validation"],
        settings=settings,
        seed=seed,
    )
    learner = start(nn.ModuleList([classifier]), LabelObjective(label_loss(task)), settings.learning_rate)
    past: tuple[CurvePoint, ...] = ()
    if checkpoint is not None and checkpoint.exists():
        load_checkpoint(learner, checkpoint)
        past = read_curve(curve_beside(checkpoint))
    scorer = None if score is None else _scorer(bench, score)
    curve = _train(learner, training, run_epoch, clock, tick, scorer, epoch_done, checkpoint, past)
    learner.encoders.load_state_dict(learner.best)
    steps = learner.progress.epoch * -(-len(rows) // settings.batch_size)
    return FineTuned(classifier, learner.progress, steps, predict(classifier, bench, scored, tick), curve)


def _scorer(bench: Bench, score: ScoreFunction) -> ScoreValidation:
    """What scores the logits (1, n, class) of the whole validation part."""
    label = bench.rows["validation"].label
    weight = np.ones(len(label))

    def scored(logits: Tensor) -> float:
        return score(probability_of(logits[0].cpu(), bench.task), label, weight)  # sync point: once per epoch

    return scored


def _train(
    learner: Learner,
    training: Training,
    run_epoch: RunEpoch,
    clock: Callable[[], float],
    tick: Tick,
    score: ScoreValidation | None,
    epoch_done: Callable[[EpochDone], None],
    checkpoint: Path | None,
    past: tuple[CurvePoint, ...],
) -> tuple[CurvePoint, ...]:
    """Train until early stopping or the last epoch, changing `learner`. The curve, which goes on from `past`."""
    saved = clock()
    curve = [point for point in past if point.epoch <= learner.progress.epoch]
    try:
        for done in pretrain(learner, training, run_epoch, clock, tick, score):
            curve.append(point_of(done))
            epoch_done(done)
            if checkpoint is not None and (done.last or clock() - saved >= _SAVE_EVERY):
                save_curve(curve, curve_beside(checkpoint))  # first: epochs too many are dropped, none may be missing
                save_checkpoint(learner, checkpoint)
                saved = clock()
    except OutOfMemory:
        size = training.settings.batch_size
        raise OutOfMemory(
            f"The GPU has too little memory for batches of {size} frames. Try `--batch-size {max(1, size // 2)}`."
        ) from None
    return tuple(curve)


def predict(classifier: nn.Module, bench: Bench, part: Part, tick: Tick) -> Predictions:
    """What the classifier says of the labelled frames of a part, in eval mode: softmax, or a sigmoid per class."""
    rows = embed(classifier, bench.store, bench.parts[part], bench.normalise, tick)
    probability = probability_of(torch.from_numpy(rows.embedding), bench.task)
    return Predictions(probability, rows.label, rows.patient, rows.record)


def probability_of(logits: Tensor, task: Task) -> NDArray[np.float64]:
    """Of logits (n, class) on the CPU: softmax where a row is one of the classes, else a sigmoid each; in float64."""
    logits = logits.double()
    found: NDArray[np.float64] = (logits.softmax(1) if task.kind == "one_of" else logits.sigmoid()).numpy()
    return found
