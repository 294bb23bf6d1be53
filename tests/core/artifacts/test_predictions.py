"""Predictions on disk."""

import numpy as np
import pytest

from clocs_core.artifacts.predictions import Predictions, read_predictions, save_predictions
from clocs_core.errors import RunFolderError


def predictions(seed, label):
    rng = np.random.default_rng(seed)
    return Predictions(rng.random((4, 3)), label, np.array([1, 1, 0, 2]), np.array([3, 3, 1, 0]))


@pytest.mark.parametrize("label", [np.array([0, 0, 2, 1]), np.eye(3, dtype=np.int64)[[0, 0, 2, 1]]])
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path, label):
    """Both kinds of task; classifiers by protocol, init and fraction."""
    path = tmp_path / "predictions.npz"
    given = {("linear", "a-b", 0.5): predictions(0, label), ("prior", "random", 1.0): predictions(1, label)}
    save_predictions(given, ["x", "y", "z"], ["r0", "r1", "r2", "r3"], path)
    found = read_predictions(path)
    assert set(found) == set(given)
    for key, rows in given.items():
        assert np.array_equal(found[key].probability, rows.probability)
        assert np.array_equal(found[key].label, label)
        assert found[key].patient.tolist() == [1, 1, 0, 2]
        assert found[key].record.tolist() == [2, 2, 1, 0]  # by the order of the names: r0, r1, r3
    with np.load(path, allow_pickle=False) as file:
        assert file["patient"].tolist() == ["y", "y", "x", "z"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"text"])
def test_a_file_that_holds_no_predictions_is_refused(tmp_path, content):
    path = tmp_path / "predictions.npz"
    path.write_bytes(content)
    with pytest.raises(RunFolderError, match=r"predictions\.npz holds no predictions that can be read"):
        read_predictions(path)
