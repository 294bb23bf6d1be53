"""What the event hooks carry. Nothing here is written to; a listener reads, and keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from clocs_core.contracts.scores import Comparison, Score


@attrs.frozen
class RunStarted:
    """A run is about to train: where it writes, what it is made of, and which epoch comes first (1, or later when
    it is resumed)."""

    folder: Path
    method: str
    dataset: str
    settings: Mapping[str, Mapping[str, object]]
    first_epoch: int


@attrs.frozen
class Health:
    """Whether the embeddings of the validation part are still spread out, and by patient.

    effective_rank: exp of the entropy of the normalised singular values: 1 is a collapse to a line.
    same_patient, other_patient: mean cosine within and between patients.
    loss_over_log_batch: training loss divided by log(batch size), which is what a guess costs in one cross-entropy
    over the batch. A loss that sums several of them starts at several.
    """

    effective_rank: float
    embedding_dim: int
    same_patient: float
    other_patient: float
    loss_over_log_batch: float

    @property
    def margin(self) -> float:
        """How much nearer, in cosine, a patient's own representations are than those of others."""
        return self.same_patient - self.other_patient

    def warning(self) -> str | None:
        """A plain sentence when the embeddings look collapsed."""
        if self.effective_rank < min(2.0, self.embedding_dim):
            return (
                f"the embeddings look collapsed: effective rank {self.effective_rank:.1f} of "
                f"{self.embedding_dim}; try a smaller learning rate, a larger batch or another temperature"
            )
        if self.other_patient > 0.99:
            return (
                f"the embeddings look collapsed: different patients have a mean cosine of "
                f"{self.other_patient:.3f}; try a smaller learning rate, a larger batch or another temperature"
            )
        return None


@attrs.frozen(eq=False)
class EpochDone:
    """One epoch of training is over. `losses` stays on the device until somebody reads it.

    validation_score: of fine-tuning, the first metric on the whole validation part; pre-training has none.
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
    last: bool  # early stopping or the last epoch: nothing follows
    validation_score: float | None = None


@attrs.frozen(eq=False)
class Picture:
    """A figure of the report, drawn: a PNG with its title and what it shows."""

    name: str
    title: str
    caption: str
    png: bytes


@attrs.frozen(eq=False)
class EmbeddingMap:
    """Embeddings of the part that is scored, row by row with what they are of."""

    embedding: NDArray[np.float32]  # (n, dim)
    patient: tuple[str, ...]
    record: tuple[str, ...]
    label: tuple[str, ...]
    part: str = "test"


@attrs.frozen(eq=False)
class RunDone:
    """A run is over and its report is written."""

    epochs_run: int
    best_epoch: int
    scores: tuple[Score, ...]
    comparisons: tuple[Comparison, ...]
    embeddings: EmbeddingMap
    pictures: tuple[Picture, ...]
