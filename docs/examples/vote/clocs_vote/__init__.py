"""A protocol: every row is predicted by the vote of the nearest training rows. `k` is chosen on validation patients.

`clocs evaluate RUN --protocol vote`
"""

from __future__ import annotations

import attrs

from clocs_core import Answer, Features, Protocol, Trial, hookimpl, option

CLOCS_API = "1.2"


@attrs.frozen
class VoteOptions:
    """The numbers of neighbours to choose from."""

    ks: tuple[int, ...] = option((1, 5, 20), "Numbers of neighbours that are tried on validation patients.")


def predict(options: VoteOptions, trial: Trial) -> Answer:
    """Predict the scored rows with the k that has most validation rows right; of equal ones, the first."""
    import numpy as np
    from sklearn.neighbors import KNeighborsClassifier

    known = trial.train
    assert trial.validation is not None  # asked for below

    def vote(k: int, rows: Features) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        model = KNeighborsClassifier(min(k, len(known))).fit(known.embedding, known.label)
        found = np.zeros((len(rows), len(trial.task.classes)))
        found[:, model.classes_] = model.predict_proba(rows.embedding)  # a class may be missing in training
        return found

    right = [float(np.mean(vote(k, trial.validation).argmax(1) == trial.validation.label)) for k in options.ks]
    best = options.ks[int(np.argmax(right))]
    return Answer(vote(best, trial.scored), chosen={"k": best})


@hookimpl
def clocs_protocols() -> list[Protocol]:
    """Offer the protocol. Core adds the controls, the label fractions, the intervals and the page."""
    return [
        Protocol(
            name="vote",
            summary="The vote of the nearest training rows, with the encoder frozen.",
            options=VoteOptions,
            predict=predict,
            tasks=("one_of",),
            validation=True,
        )
    ]
