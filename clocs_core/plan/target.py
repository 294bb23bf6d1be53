"""Choose the recordings of a data set that a network from a file reads, for embedding and for predicting."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from clocs_core.artifacts.card import NetworkCard
from clocs_core.contracts.offers import Dataset
from clocs_core.contracts.records import Framing
from clocs_core.plan.compatibility import fit_channels
from clocs_core.plan.data import DataPlan
from clocs_core.progress import Display
from clocs_core.settings.options import plain
from clocs_core.settings.sections import DataSettings
from clocs_core.settings.toml_file import Tables

Parts: TypeAlias = Literal["train", "validation", "test", "all"]
"""One part of the patients, or all of them."""


@attrs.frozen
class Target:
    """The recordings that a network reads, and their framing. own: whether it was trained on this data set.

    keeps_time: whether a frame must last as long as in training, whatever the rate of the recordings.
    """

    recordings: DataPlan
    framing: Framing
    own: bool
    keeps_time: bool = False

    def tables(self) -> Tables:
        """Return the effective settings as plain tables."""
        read = self.recordings
        parts = {"data": read.data, "dataset": read.dataset.options, "framing": self.framing}
        return {name: plain(part) for name, part in parts.items()}


def known_channels(card: NetworkCard, offer: Dataset, data: DataSettings) -> DataSettings:
    """Set the channels that the network reads, if the data set declares its channels."""
    if not offer.channels:  # only the files know them
        return data
    preset = offer.presets.get(data.channels[0]) if len(data.channels) == 1 else None
    where = f"Data set {offer.name!r}"
    return attrs.evolve(data, channels=fit_channels(card, offer.channels, preset or data.channels, where))


def warn_of_split(card: NetworkCard, target: Target, split_hash: str, show: Display) -> None:
    """Warn where the data set of the network is split otherwise than when it was trained."""
    if target.own and split_hash != card.split_hash:
        show.warn(
            f"the patients are divided otherwise than when the {card.what} was trained: it may have learnt from those "
            "of the validation and test part here"
        )


def warn_of_signals(card: NetworkCard, target: Target, show: Display) -> None:
    """Warn where signals are of another modality than those the network was trained on."""
    found = target.recordings.dataset.offer.modality
    if found != card.modality:
        show.warn(f"the {card.what} was trained on signals of kind {card.modality!r}, and these are {found!r}")
