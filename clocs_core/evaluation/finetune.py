"""Fine-tuning: put a new linear head on the encoder and train all weights on the labels.

"the pre-trained parameters are used as an initialization for training on the downstream supervised task" (section 5.3);
"During training on the downstream tasks, the final layer was introduced" (appendix C). The loop and the step are those
of pre-training: encoder and head are one network, the frame is the only view, and the loss is a pure function of
logits and labels.
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
from clocs_core.artifacts.networks import ScaledLinear, with_head
from clocs_core.artifacts.partial_input import Reading
from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.batches import Batch, Views
from clocs_core.contracts.events import EpochDone
from clocs_core.contracts.kinds import kind_of
from clocs_core.contracts.records import Part, Task
from clocs_core.errors import OutOfMemory
from clocs_core.evaluation.bootstrap import ScoreFunction
from clocs_core.evaluation.features import embed
from clocs_core.evaluation.labelled_frames import LabelledFrames, take
from clocs_core.progress import Tick
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.adam import Update
from clocs_core.train.agreement import refuse_differences
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.epochs import RunEpoch, Training
from clocs_core.train.label_loss import LabelLoss, label_loss
from clocs_core.train.learner import Learner, Progress, start
from clocs_core.train.loop import ScoreValidation, train_epochs
from clocs_core.train.ranks import Group
from clocs_core.train.ranks import Part as RankPart
from clocs_core.train.step import ViewMaker

_SAVE_EVERY = 30.0  # seconds between checkpoints: the most that a kill loses if an epoch is shorter


class LabelObjective(nn.Module):
    """An objective without state: the loss of logits and frame labels."""

    def __init__(self, loss: LabelLoss) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views, ranks: RankPart | None = None) -> Tensor:
        """Compute the loss of one batch whose instances all have a label; with `ranks`, the share of this process."""
        assert views.batch.label is not None  # only labelled frames are trained on
        loss = self.loss(encode(views.signal), views.batch.label)  # encode gives logits (view, batch, class)
        return loss if ranks is None else ranks.share_of_mean(loss)


def build_classifier(encoder: nn.Module, embedding_dim: int, task: Task, seed: int) -> nn.Sequential:
    """Put a new linear head on the encoder: signals (n, channel, sample) to logits (n, class), or to numbers (n, 1).

    The head's weights follow from the seed alone, so that every init starts with the same head.
    """
    torch.manual_seed(seeds.derive(seed, "head"))  # layers draw their weights from torch's default generator
    return with_head(encoder, embedding_dim, task)


def frame_as_view(batch: Batch, _generator: Generator) -> Views:
    """Return the frame as the only view, without random numbers and without a copy."""
    return Views(signal=batch.signal.transpose(0, 1), batch=batch)  # (view, batch, channel, sample)


@attrs.frozen(eq=False)
class FineTuned:
    """A classifier with the weights of its best epoch, its training progress and its predictions of the scored part.

    curve: every epoch, also those before a kill; with scores of the validation part if a metric was given.
    earlier: the seconds that earlier processes spent, up to the checkpoint that was resumed.
    """

    classifier: nn.Module
    progress: Progress
    steps: int
    predictions: Predictions
    curve: tuple[CurvePoint, ...] = ()
    earlier: float = 0.0


@attrs.frozen(kw_only=True, eq=False)
class FineTuning:
    """The settings of a fine-tuning.

    scored: the part to predict at the end.
    checkpoint: file to resume from and to save to, with the curve beside it; the caller removes it.
    score: scores the validation part after every epoch, for the curve; early stopping uses the loss only.
    layer_decay: factor of the learning rate from a block of the encoder to the one before it.
    group: processes that share every batch; process 0 alone writes.
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
    layer_decay: float = 1.0
    group: Group | None = None

    @property
    def writes(self) -> bool:
        """Whether this process saves checkpoints."""
        return self.checkpoint is not None and (self.group is None or not self.group.rank)


def layer_factors(encoder: nn.Module, decay: float) -> dict[Tensor, float]:
    """Return the factor of the learning rate of every weight of an encoder: `decay` for its last block, and so on.

    Its blocks are its children that have weights, in order; a Sequential or a ModuleList counts as its items. Weights
    outside of them, such as the positions of a transformer, have the factor of the first block.
    """
    if isinstance(encoder, Reading):  # it has no weights of its own
        encoder = encoder.encoder
    blocks = [
        block
        for child in encoder.children()
        for block in (child.children() if isinstance(child, (nn.Sequential, nn.ModuleList)) else (child,))
        if any(True for _ in block.parameters())
    ]
    factors: dict[Tensor, float] = dict.fromkeys(encoder.parameters(), decay ** max(1, len(blocks)))
    for place, block in enumerate(blocks):
        factors |= dict.fromkeys(block.parameters(), decay ** (len(blocks) - place))
    return factors


def fine_tune(encoder: nn.Module, frames: LabelledFrames, rows: NDArray[np.int64], how: FineTuning) -> FineTuned:
    """Train the encoder in place, with a new head, on some rows of the labelled training frames; predict a part.

    Early stopping uses the whole validation part. `encoder` must be on the device of the frames.
    """
    device, task, settings = frames.store.device, frames.task, how.settings
    classifier = build_classifier(encoder, how.embedding_dim, task, how.seed)
    if isinstance(classifier.head, ScaledLinear):
        classifier.head.fit_scale(torch.from_numpy(frames.rows["train"].label[rows]))
    classifier.to(device)
    training = Training(
        store=frames.store,
        make_views=ViewMaker(frame_as_view, (), frames.normalise),
        train=take(frames.parts["train"], torch.from_numpy(rows).to(device)),
        validation=frames.parts["validation"],
        settings=settings,
        seed=how.seed,
        group=how.group,
    )
    objective, update = LabelObjective(label_loss(task)), Update.of(settings)
    learner = start(nn.ModuleList([classifier]), objective, settings.learning_rate, update)
    if how.layer_decay != 1.0:
        learner.optimiser.factor = layer_factors(encoder, how.layer_decay)
    curve, earlier = _train(learner, training, how, None if how.score is None else _scorer(frames, how.score))
    learner.encoders.load_state_dict(learner.best)
    steps = learner.progress.epoch * -(-len(rows) // settings.batch_size)
    predicted = predict(classifier, frames, how.scored, how.tick, how.group)
    if task.classes:
        predicted = attrs.evolve(predicted, validation=predict(classifier, frames, "validation", how.tick, how.group))
    return FineTuned(classifier, learner.progress, steps, predicted, curve, earlier)


def _scorer(frames: LabelledFrames, score: ScoreFunction) -> ScoreValidation:
    """Return a function that scores logits (1, n, class) of the whole validation part."""
    label = frames.rows["validation"].label
    weight = np.ones(len(label))

    def scored(logits: Tensor) -> float:
        return score(probability_of(logits[0].cpu(), frames.task), label, weight)  # sync point: once per epoch

    return scored


def _train(
    learner: Learner, training: Training, how: FineTuning, score: ScoreValidation | None
) -> tuple[tuple[CurvePoint, ...], float]:
    """Train `learner` until early stopping or the last epoch. Return the curve of all epochs, and earlier seconds."""
    curve: list[CurvePoint] = []
    checkpoint, earlier = how.checkpoint, 0.0
    if checkpoint is not None and checkpoint.exists():
        earlier = float(str(load_checkpoint(learner, checkpoint).get("seconds", 0.0)))
        curve = [point for point in read_curve(curve_beside(checkpoint)) if point.epoch <= learner.progress.epoch]
    if how.group is not None:  # a process that cannot see the folder would begin anew
        refuse_differences({"epochs trained": str(learner.progress.epoch)}, how.group, training.store.device)
    began = saved = how.clock()
    try:
        for done in train_epochs(learner, training, how.run_epoch, how.clock, how.tick, score):
            curve.append(point_of(done))
            how.epoch_done(done)
            if how.writes and (done.last or how.clock() - saved >= _SAVE_EVERY):
                assert checkpoint is not None
                save_curve(curve, curve_beside(checkpoint))  # before the checkpoint: a resume drops extra epochs only
                saved = how.clock()
                save_checkpoint(learner, checkpoint, {"seconds": earlier + saved - began})
    except OutOfMemory:
        size = training.settings.batch_size
        raise OutOfMemory(
            f"The GPU has too little memory for batches of {size} frames. Try `batch_size={max(1, size // 2)}`."
        ) from None
    return tuple(curve), earlier


def predict(
    classifier: nn.Module, frames: LabelledFrames, part: Part, tick: Tick, group: Group | None = None
) -> Predictions:
    """Predict the labelled frames of a part in eval mode. group: processes that share the work."""
    rows = embed(classifier, frames.store, frames.parts[part], frames.normalise, tick, group)
    logits = torch.from_numpy(rows.embedding)  # (n, output)
    # The paper's released code ranks logits, which a softmax alone does not give back.
    log_sum = logits.double().logsumexp(1).numpy() if frames.task.kind == "one_of" else None
    probability = probability_of(logits, frames.task)
    return Predictions(probability, rows.label, rows.patient, rows.record, log_sum=log_sum)


def probability_of(logits: Tensor, task: Task) -> NDArray[np.float64]:
    """Turn logits (n, output) on the CPU into what is predicted, in float64: probabilities, or numbers."""
    found: NDArray[np.float64] = kind_of(task).decode(logits.double()).numpy()
    return found
