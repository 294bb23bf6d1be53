"""Predictions of frames and of recordings."""

from __future__ import annotations

import numpy as np
import pytest

from clocs_core.contracts.records import TOGETHER, Task
from clocs_core.inference.predicted import Predicted, as_level


@pytest.fixture
def frames():
    """Three frames of recording b and one of a, of one patient each."""
    return Predicted(
        level="frame",
        task=Task("t", ("x", "y")),
        probability=np.array([[0.2, 0.8], [0.4, 0.6], [1.0, 0.0], [0.0, 1.0]]),
        record=np.array([1, 0, 1, 1]),
        patient=np.array([0, 1, 0, 0]),
        channel=np.array([0, 1, TOGETHER, 0]),
        start=np.array([0, 0, 50, 100]),
        records=("a", "b"),
        patients=("p", "q"),
        channels=("I", "II"),
    )


def test_a_recording_has_the_mean_of_its_frames(frames):
    found = as_level(frames, "record")
    columns = found.columns()
    assert set(columns) == {"record", "patient"}
    by_name = dict(zip(columns["record"], found.probability, strict=True))
    np.testing.assert_allclose(by_name["a"], [0.4, 0.6])
    np.testing.assert_allclose(by_name["b"], [0.4, 0.6])
    assert dict(zip(columns["record"], columns["patient"], strict=True)) == {"a": "q", "b": "p"}


def test_frames_stay_frames_and_channels_read_at_once_are_all(frames):
    assert as_level(frames, "frame").columns()["channel"].tolist() == ["I", "II", "all", "I"]
