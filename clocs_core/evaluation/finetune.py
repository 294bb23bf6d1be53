"""Fine-tuning: a new linear head on the encoder's representation, and all weights train on the labels.

"the pre-trained parameters are used as an initialization for training on the downstream supervised task" (section 5.3);
"During training on the downstream tasks, the final layer was introduced" (appendix C). It is training by the same
loop and the same step as pre-training: the one network is encoder and head together, the one view is the frame, and
the loss is a pure function of logits and labels.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from clocs_core import seeds
from clocs_core.artifacts.curves import CurvePoint, curve_beside, point_of, read_curve, save_curve
from clocs_core.artifacts.networks import with_head
from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.batches import Batch, Views
from clocs_core.contracts.events import EpochDone
from clocs_core.contracts.records import Part, Task
from clocs_core.errors import OutOfMemory
from clocs_core.evaluation.bootstrap import ScoreFunction
from clocs_core.evaluation.features import embed
from clocs_core.evaluation.labelled_frames import LabelledFrames, take
from clocs_core.progress import Tick
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.epochs import RunEpoch, Training
from clocs_core.train.label_loss import LabelLoss, label_loss
from clocs_core.train.learner import Learner, Progress, start
from clocs_core.train.loop import ScoreValidation, train_epochs
from clocs_core.train.step import ViewMaker

_SAVE_EVERY = 30.0  # seconds between checkpoints: what a kill costs at most, where an epoch is shorter


class LabelObjective(nn.Module):
    """The loss of logits by the label of their frame, as an objective without state."""

    def __init__(self, loss: LabelLoss) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views) -> Tensor:
        """The loss of one batch, whose instances all have a label."""
        assert views.batch.label is not None  # only labelled frames come here
        return self.loss(encode(views.signal), views.batch.label)  # of logits (view, batch, class)


def build_classifier(encoder: nn.Module, embedding_dim: int, classes: int, seed: int) -> nn.Sequential:
    """The encoder with a new linear head: signals (n, channel, sample) to logits (n, class).

    The head follows from the seed alone, so that every init begins with the same one.
    """
    torch.manual_seed(seeds.derive(seed, "head"))  # layers draw their weights from torch's own generator
    return with_head(encoder, embedding_dim, classes)


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


@attrs.frozen(kw_only=True, eq=False)
class FineTuning:
    """How a classifier is fine-tuned.

    scored: the part that is predicted in the end. checkpoint: a file to resume from and to save to now and then, with
    the curve beside it; the caller removes it. score: scores the validation part after every epoch, for the curve;
    early stopping goes by the loss alone.
    """

    embedding_dim: int
    settings: TrainSettings
    seed: int
    scored: Part
    run_epoch: RunEpoch
    clock: Callable[[], float]
    tick: Tick
    epoch_done: Callable[[EpochDone], None] = lambda done: None
    checkpoint: Path | None = None
    score: ScoreFunction | None = None


def fine_tune(encoder: nn.Module, frames: LabelledFrames, rows: NDArray[np.int64], how: FineTuning) -> FineTuned:
    """Train encoder and head, changing them, on some rows of the labelled training frames; predict a part.

    The validation part is used whole, for early stopping. `encoder` is on the device of the frames.
    """
    device, task, settings = frames.store.device, frames.task, how.settings
    classifier = build_classifier(encoder, how.embedding_dim, len(task.classes), how.seed).to(device)
    training = Training(
        store=frames.store,
        make_views=ViewMaker(frame_as_view, (), frames.normalise),
        train=take(frames.parts["train"], torch.from_numpy(rows).to(device)),
        validation=frames.parts["validation"],
        settings=settings,
        seed=how.seed,
    )
    learner = start(nn.ModuleList([classifier]), LabelObjective(label_loss(task)), settings.learning_rate)
    curve = _train(learner, training, how, None if how.score is None else _scorer(frames, how.score))
    learner.encoders.load_state_dict(learner.best)
    steps = learner.progress.epoch * -(-len(rows) // settings.batch_size)
    return FineTuned(classifier, learner.progress, steps, predict(classifier, frames, how.scored, how.tick), curve)


def _scorer(frames: LabelledFrames, score: ScoreFunction) -> ScoreValidation:
    """What scores the logits (1, n, class) of the whole validation part."""
    label = frames.rows["validation"].label
    weight = np.ones(len(label))

    def scored(logits: Tensor) -> float:
        return score(probability_of(logits[0].cpu(), frames.task), label, weight)  # sync point: once per epoch

    return scored


def _train(
    learner: Learner, training: Training, how: FineTuning, score: ScoreValidation | None
) -> tuple[CurvePoint, ...]:
    """Train until early stopping or the last epoch, changing `learner`. Returns the curve of all epochs."""
    curve: list[CurvePoint] = []
    checkpoint = how.checkpoint
    if checkpoint is not None and checkpoint.exists():
        load_checkpoint(learner, checkpoint)
        curve = [point for point in read_curve(curve_beside(checkpoint)) if point.epoch <= learner.progress.epoch]
    saved = how.clock()
    try:
        for done in train_epochs(learner, training, how.run_epoch, how.clock, how.tick, score):
            curve.append(point_of(done))
            how.epoch_done(done)
            if checkpoint is not None and (done.last or how.clock() - saved >= _SAVE_EVERY):
                save_curve(curve, curve_beside(checkpoint))  # first: epochs too many are dropped, none may be missing
                save_checkpoint(learner, checkpoint)
                saved = how.clock()
    except OutOfMemory:
        size = training.settings.batch_size
        raise OutOfMemory(
            f"The GPU has too little memory for batches of {size} frames. Try `batch_size={max(1, size // 2)}`."
        ) from None
    return tuple(curve)


def predict(classifier: nn.Module, frames: LabelledFrames, part: Part, tick: Tick) -> Predictions:
    """What the classifier says of the labelled frames of a part, in eval mode: softmax, or a sigmoid per class."""
    rows = embed(classifier, frames.store, frames.parts[part], frames.normalise, tick)
    probability = probability_of(torch.from_numpy(rows.embedding), frames.task)
    return Predictions(probability, rows.label, rows.patient, rows.record)


def probability_of(logits: Tensor, task: Task) -> NDArray[np.float64]:
    """Of logits (n, class) on the CPU: softmax where a row is one of the classes, else a sigmoid each; in float64."""
    logits = logits.double()
    found: NDArray[np.float64] = (logits.softmax(1) if task.kind == "one_of" else logits.sigmoid()).numpy()
    return found
