"""Predictions on disk."""

import errno
from pathlib import Path
from random import Random

import numpy as np
import pytest
from faults.mutations import flip_bit

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


def test_no_flipped_bit_is_a_traceback_or_another_number(tmp_path):
    """zipfile, zlib, struct and NumPy each have errors of their own."""
    path = tmp_path / "predictions.npz"
    given = {("linear", "a", 0.5): predictions(0, np.array([0, 0, 2, 1]))}
    save_predictions(given, ["x", "y", "z"], ["r0", "r1", "r2", "r3"], path)
    whole, chance = path.read_bytes(), Random(0)
    refused = 0
    for _ in range(600):
        path.write_bytes(flip_bit(whole, chance))
        try:
            found = read_predictions(path)
        except RunFolderError:
            refused += 1
            continue
        assert np.array_equal(found["linear", "a", 0.5].probability, given["linear", "a", 0.5].probability)
        assert found["linear", "a", 0.5].patient.tolist() == [1, 1, 0, 2]
    assert refused > 300


@pytest.mark.parametrize(
    "change",
    [
        {"label": np.array([0, 1])},
        {"label": np.array(["a", "b", "c", "d"])},
        {"patient": np.array(["x"])},
        {"probability/linear/a/0.5": np.zeros((3, 3))},
        {"probability/linear/a/0.5": np.zeros((4, 3), dtype=np.float32)},
        {"probability/linear/a/0.5": np.zeros(4)},
        {"probability/linear/0.5": np.zeros((4, 3))},
        {"probability/linear/a/half": np.zeros((4, 3))},
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(tmp_path, change):
    arrays = {"patient": np.array(list("xxyz")), "record": np.array(list("abcd")), "label": np.array([0, 1, 0, 1])}
    np.savez(tmp_path / "predictions.npz", **arrays | {"probability/linear/a/0.5": np.zeros((4, 3))} | change)
    with pytest.raises(RunFolderError, match=r"predictions\.npz holds no predictions that can be read"):
        read_predictions(tmp_path / "predictions.npz")


def test_facts_of_the_rows_are_kept_beside_the_predictions(tmp_path):
    rows = Predictions(np.array([[0.25, 0.75]]), np.array([1]), np.array([0]), np.array([0]))
    beside = {"classes": np.array(["AF", "SR"]), "channel": np.array(["II"]), "start": np.array([2500])}
    save_predictions({("linear", "m", 1.0): rows}, ["p"], ["r"], tmp_path / "p.npz", beside)
    with np.load(tmp_path / "p.npz", allow_pickle=False) as held:
        assert (held["classes"].tolist(), held["channel"].tolist(), held["start"].tolist()) == (
            ["AF", "SR"],
            ["II"],
            [2500],
        )
    assert list(read_predictions(tmp_path / "p.npz")) == [("linear", "m", 1.0)]


def test_an_error_of_the_system_is_no_damage(tmp_path, monkeypatch):
    np.savez(tmp_path / "p.npz", label=np.array([0]))

    def fails(path):
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    monkeypatch.setattr(Path, "read_bytes", fails)
    with pytest.raises(OSError, match="Too many open files") as found:
        read_predictions(tmp_path / "p.npz")
    assert not isinstance(found.value, RunFolderError)
