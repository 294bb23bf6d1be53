"""A fine-tuned classifier in Python: opened by a path, given signals.

model = clocs.load_classifier("runs/…/evaluations/…")
model.predict(signal, sampling_rate=400, channels=["II"]).label
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from clocs_core.api.signals import as_unsaid, cut_signal, spread
from clocs_core.api.tables import Table
from clocs_core.artifacts.card import ClassifierCard
from clocs_core.artifacts.classifier import LoadedClassifier, choose_classifier
from clocs_core.artifacts.classifier import load_classifier as open_classifier
from clocs_core.contracts.kinds import KINDS
from clocs_core.errors import DataError
from clocs_core.evaluation.finetune import probability_of
from clocs_core.inference.network import outputs_of
from clocs_core.inference.rows import as_trained
from clocs_core.plugins.session import installed_session
from clocs_core.train.build import choose_device


@attrs.frozen(eq=False)
class Prediction:
    """The probabilities of one recording: their mean over frames and channels, and those of each frame.

    For a number, `classes` has the task's name alone, and the predicted values stand for probabilities.
    frame_probability is NaN where a channel of a frame cannot be used.
    """

    classes: tuple[str, ...]
    probability: NDArray[np.float64]  # (class,)
    frame_probability: NDArray[np.float64]  # (frame, channel, class)
    start: NDArray[np.int64]  # (frame,): the first sample of each frame, counted in the signal as it was given
    channels: tuple[str, ...]
    kind: str  # of the task: one_of, any_of or number

    @property
    def label(self) -> str | tuple[str, ...] | float:
        """The most probable class; all classes above one half, where several may hold; or the number."""
        return KINDS[self.kind].decide(self.probability, self.classes)

    def table(self) -> Table:
        """A row for each class, the most probable first."""
        order = np.argsort(-self.probability, kind="stable")
        return Table(
            ("class", KINDS[self.kind].predicted), tuple((self.classes[n], float(self.probability[n])) for n in order)
        )

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


class Classifier:
    """A fine-tuned classifier. A copy in another process opens the file again: it has to stay where it is."""

    def __init__(self, path: Path, device: str = "cpu") -> None:
        self.path, self.device = path, device
        self._opened: LoadedClassifier | None = None

    @property
    def about(self) -> ClassifierCard:
        """The card of the classifier: classes, signal, label fraction, origin."""
        return self._open().card

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that it tells apart; the task's name if it predicts a number."""
        return self.about.task.outputs

    def predict(
        self,
        signal: ArrayLike | Tensor,
        *,
        sampling_rate: float,
        channels: Sequence[str] | str | None = None,
        unit: str = "",
        trained_at: float | None = None,
        unseen_channels: bool = False,
    ) -> Prediction:
        """Predict the class of a recording (channel, sample), or (sample,) of one channel.

        It is resampled, cut and normalised as in training. sampling_rate: in Hz. channels: the name of every row, in
        order; default: the channels of the classifier. unit: such as mV. trained_at, unseen_channels: as for
        `Embedder.embed`. Raises DataError or SettingsError where the signal does not fit.
        """
        loaded, card = self._open(), self.about
        unsaid = as_unsaid(card, signal, sampling_rate, channels, unit, trained_at, unseen_channels)
        rows = cut_signal(card, signal, unsaid)
        network = as_trained(loaded.network, card, rows.factor)
        logits = outputs_of(network, rows.signal, choose_device(self.device))  # (n, class)
        if not np.isfinite(logits).all():
            raise DataError("The classifier gives no number: samples are too large. Check the unit of the signal.")
        probability = probability_of(torch.from_numpy(logits), card.task)
        each, names = spread(card, rows, probability)
        return Prediction(self.classes, probability.mean(axis=0), each, rows.starts, names, card.task.kind)

    def __repr__(self) -> str:
        card = self.about
        return f"Classifier({card.task.name!r}: {', '.join(card.task.outputs)}; {card.init} at F = {card.fraction:g})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}  # the path travels, not the weights

    def _open(self) -> LoadedClassifier:
        if self._opened is None:
            self._opened = open_classifier(self.path, installed_session().catalogue, choose_device(self.device))
        return self._opened


def load_classifier(
    path: str | Path, *, init: str | None = None, label_fraction: float | None = None, device: str = "cpu"
) -> Classifier:
    """Open a fine-tuned classifier: its file, the folder of an evaluation, or a run that has one.

    init, label_fraction: which of several; default: pre-trained weights, and the largest label fraction.
    Raises RunFolderError where there is none, and SettingsError where several fit.
    """
    found = Classifier(choose_classifier(Path(path), init, label_fraction), device)
    found.about  # noqa: B018  opened now, so that a damaged file is known here
    return found
