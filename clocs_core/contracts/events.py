"""Records passed to the event hooks. A listener reads them, changes nothing and keeps no reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from clocs_core.contracts.scores import Comparison, Score

TOLD_AGAIN = ("epoch_done", "run_done")
"""Events that a resumed run announces again where a listener was not told: a full disk stops the run there."""


@attrs.frozen
class RunStarted:
    """The run that is about to train: its folder, its parts and its first epoch (1, or later when it is resumed)."""

    folder: Path
    method: str
    dataset: str
    settings: Mapping[str, Mapping[str, object]]
    first_epoch: int


@attrs.frozen
class Health:
    """Measures of collapse, taken from the embeddings of the validation part.

    effective_rank: exp of the entropy of the normalised singular values: 1 is a collapse to a line.
    same_patient, other_patient: mean cosine within and between patients.
    loss_over_log_batch: training loss divided by log(batch size). A guess scores 1 in one cross-entropy over the
    batch; a loss that sums several cross-entropies starts at their number.
    """

    effective_rank: float
    embedding_dim: int
    same_patient: float
    other_patient: float
    loss_over_log_batch: float

    @property
    def margin(self) -> float:
        """Mean cosine within patients minus mean cosine between patients."""
        return self.same_patient - self.other_patient

    def warning(self) -> str | None:
        """Return a sentence that says the embeddings look collapsed, or None."""
        if self.effective_rank < min(2.0, self.embedding_dim):
            return (
                f"the embeddings look collapsed: effective rank {self.effective_rank:.1f} of "
                f"{self.embedding_dim}; try a smaller learning rate, a larger batch or, where the loss has one, "
                "another temperature"
            )
        if self.other_patient > 0.99:
            return (
                f"the embeddings look collapsed: different patients have a mean cosine of "
                f"{self.other_patient:.3f}; try a smaller learning rate, a larger batch or, where the loss has one, "
                "another temperature"
            )
        return None


@attrs.frozen(eq=False)
class EpochDone:
    """The results of one epoch. `losses` stays on the device until a listener reads it.

    validation_score: the first metric on the whole validation part; set by fine-tuning only.
    components: the components of the training loss that an objective names, each a mean over the epoch's instances.
    """

    epoch: int
    losses: Tensor  # (step,)
    train_loss: float
    validation_loss: float
    health: Health
    improved: bool
    best_epoch: int
    instances: int
    seconds: float
    last: bool  # no epoch follows: early stopping, or all epochs are done
    validation_score: float | None = None
    components: Mapping[str, float] = attrs.field(factory=dict)

    def scalars(self) -> dict[str, float]:
        """Return the losses, the health and the components by the names that curves have; some may be NaN."""
        health = self.health
        return {
            "loss/train": self.train_loss,
            "loss/validation": self.validation_loss,
            "health/effective_rank": health.effective_rank,
            "health/same_patient": health.same_patient,
            "health/other_patient": health.other_patient,
            "health/margin": health.margin,
            "health/loss_over_log_batch": health.loss_over_log_batch,
            **{f"components/{name}": value for name, value in self.components.items()},
        }


@attrs.frozen(eq=False)
class Picture:
    """A figure of the report as PNG, with its title and caption."""

    name: str
    title: str
    caption: str
    png: bytes


@attrs.frozen(eq=False)
class EmbeddingMap:
    """Embeddings of the scored part; each row has its patient, record and label."""

    embedding: NDArray[np.float32]  # (n, dim)
    patient: tuple[str, ...]
    record: tuple[str, ...]
    label: tuple[str, ...]
    part: str = "test"


@attrs.frozen
class RunStopped:
    """A run that ended before its report: by an error, or by somebody who interrupted it. It may be resumed.

    reason: `failed` or `interrupted`. problem: the error in a sentence; empty for an interruption.
    """

    reason: Literal["failed", "interrupted"]
    problem: str = ""


@attrs.frozen(eq=False)
class RunDone:
    """The results of a finished run whose report is written."""

    epochs_run: int
    best_epoch: int
    scores: tuple[Score, ...]
    comparisons: tuple[Comparison, ...]
    embeddings: EmbeddingMap
    pictures: tuple[Picture, ...]


@attrs.frozen(eq=False)
class EvaluationDone:
    """The results of a finished evaluation whose report is written; `folder` is None where nothing is kept."""

    folder: Path | None
    protocol: str
    init: str
    dataset: str
    task: str
    scores: tuple[Score, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


class Listener:
    """Follows a run or an evaluation. Override what you need. A method that raises costs a warning, not the run."""

    def run_started(self, run: RunStarted) -> None:
        """Called once, before the first epoch of this process."""

    def epoch_done(self, run: RunStarted, epoch: EpochDone) -> None:
        """Called after every epoch, when its metrics and checkpoint are on disk."""

    def run_stopped(self, run: RunStarted, stopped: RunStopped) -> None:
        """Called once if the run fails or is interrupted, instead of `run_done`."""

    def run_done(self, run: RunStarted, done: RunDone) -> None:
        """Called once, last, when the report is written."""

    def evaluation_done(self, done: EvaluationDone) -> None:
        """Called once, when the report of an evaluation is written."""
