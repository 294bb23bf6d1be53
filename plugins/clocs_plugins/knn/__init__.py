"""The protocol `knn`: predict a row by the labels of the nearest training rows."""

from __future__ import annotations

from typing import Literal

import attrs

from clocs_core import Answer, Protocol, Trial, hookimpl, option


@attrs.frozen
class KnnOptions:
    """How many neighbours are asked, and what near means."""

    k: int = option(20, "Number of neighbours.", check=(lambda k: k > 0, "be positive"))
    nearness: Literal["cosine", "euclidean"] = option("cosine", "Distance between two representations.")


def predict(options: KnnOptions, trial: Trial) -> Answer:
    """Predict the mean label of the `k` nearest training rows."""
    from clocs_plugins.knn.neighbours import vote

    return Answer(vote(trial, options.k, options.nearness))


@hookimpl
def clocs_protocols() -> list[Protocol]:
    """Offer the protocol."""
    return [
        Protocol(
            name="knn",
            summary="The mean label of the nearest training rows, with the encoder frozen.",
            options=KnnOptions,
            predict=predict,
        )
    ]
