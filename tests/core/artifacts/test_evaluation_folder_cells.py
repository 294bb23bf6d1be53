"""A classifier that is kept is found again by its own key, and is finished only when all of it is there."""

from __future__ import annotations

import numpy as np
import pytest

from clocs_core.artifacts import evaluation_folder
from clocs_core.artifacts.evaluation_folder import EvaluationFolder, Finished
from clocs_core.artifacts.predictions import Predictions
from clocs_core.artifacts.reports import CellSummary

KEYS = [
    ("linear", "method", 0.5),
    ("linear", "method", 0.25),
    ("linear", "method", 1.0),
    ("linear", "random", 0.5),
    ("prior", "random", 0.5),
    ("finetune", "random", 0.5),
]


def cell(key):
    """A classifier whose first probability is the place of its key."""
    protocol, init, fraction = key
    ids = np.array([0, 1])
    probability = np.array([[KEYS.index(key) / 10, 1.0], [0.5, 0.5]])
    return Finished(
        CellSummary(protocol=protocol, init=init, label_fraction=fraction), Predictions(probability, ids, ids, ids)
    )


def test_every_classifier_is_found_by_its_own_protocol_init_and_fraction(tmp_path):
    """Predictions of the untrained encoder under the name of the method would be its score."""
    folder = EvaluationFolder(tmp_path)
    for number, key in enumerate(KEYS):
        assert [folder.finished(one) is not None for one in KEYS] == [True] * number + [False] * (6 - number)
        folder.finish(key, cell(key), ("p0", "p1"), ("r0", "r1"))
    for key in KEYS:
        found = folder.finished(key)
        assert (found.summary.protocol, found.summary.init, found.summary.label_fraction) == key
        np.testing.assert_array_equal(found.rows.probability, cell(key).rows.probability)


def test_a_classifier_is_not_finished_before_its_predictions_are_kept(tmp_path, monkeypatch):
    """A kill in between: without its rows, a finished classifier would be one that could not be trained."""

    def killed(*_arguments):
        raise KeyboardInterrupt

    folder = EvaluationFolder(tmp_path)
    monkeypatch.setattr(evaluation_folder, "save_predictions", killed)
    with pytest.raises(KeyboardInterrupt):
        folder.finish(KEYS[0], cell(KEYS[0]), ("p0", "p1"), ("r0", "r1"))
    assert folder.finished(KEYS[0]) is None
