"""The input and output of a protocol: labelled rows of each part, with or without the encoder, and predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from clocs_core.contracts.records import Task

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor, nn


@attrs.frozen(eq=False)
class Features:
    """Rows of a part of the data: embedding, label, patient and record. A row is a frame or a recording."""

    embedding: NDArray[np.float32]  # (n, dim)
    label: NDArray[Any]  # (n,) or (n, class) int64 with -1 for none; of a number (n,) float32 with NaN for none
    patient: NDArray[np.int64]  # (n,)
    record: NDArray[np.int64]  # (n,)

    def __len__(self) -> int:
        return len(self.embedding)

    def take(self, rows: NDArray[np.int64]) -> Features:
        """Return the chosen rows, in the order given."""
        return Features(self.embedding[rows], self.label[rows], self.patient[rows], self.record[rows])


@attrs.frozen(eq=False, kw_only=True)
class Trial:
    """One encoder at one label fraction, for a protocol to learn from and to predict.

    train: the labelled rows that it may learn from. validation: all labelled validation rows, if the protocol asks for
    them. scored: the rows to predict; their labels are withheld.
    seed: for every random choice; the same for the encoder and its control. torch is seeded with it before the call.
    encoder: the network, in eval mode on `device`, for a protocol that wants it; it may be changed. Embeddings are
    (n, 0) then.
    signal: gives the normalised signals (n, channel, sample) of rows of `train`, `validation` or `scored`, on `device`.
    """

    task: Task
    train: Features
    scored: Features
    seed: int
    device: torch.device
    validation: Features | None = None
    encoder: nn.Module | None = None
    signal: Callable[[str, NDArray[np.int64]], Tensor] | None = None


@attrs.frozen(eq=False)
class Answer:
    """The predictions of the scored rows (n, output): a probability of each class, or the number.

    The probabilities of a one-of task sum to 1 in each row.

    chosen: the choices that were made on the validation rows, by name, to be shown. notes: sentences for the reader.
    """

    predicted: NDArray[np.float64]
    chosen: Mapping[str, object] = attrs.field(factory=dict)
    notes: tuple[str, ...] = ()
