"""The recordings that are most wrong, and what is said of them."""

from __future__ import annotations

import numpy as np
from fake_frames import AGE, ANY_OF, TASK

from clocs_core.artifacts.predictions import Predictions
from clocs_core.evaluation.worst import find_worst

NAMES = ("anna", "ben"), ("r0", "r1", "r2")


def predictions(probability, label):
    count = len(label)
    return Predictions(np.array(probability), np.array(label), np.arange(count) % 2, np.arange(count))


def test_the_least_probable_true_class_is_the_worst():
    rows = predictions([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.5, 0.25]], [1, 1, 2])
    first, second, third = find_worst(rows, TASK, NAMES)
    assert (first.record, first.patient, first.label, first.predicted) == ("r0", "anna", "b", "a 0.70, b 0.20")
    assert (second.record, second.error) == ("r2", 0.75)
    assert third.predicted == "b 0.80"


def test_of_any_classes_the_widest_gap_counts():
    rows = predictions([[0.9, 0.2, 0.1], [0.1, 0.6, 0.1]], [[0, 0, 0], [0, 1, 0]])
    first, second = find_worst(rows, ANY_OF, NAMES)
    assert (first.label, first.predicted, first.error) == ("none of the classes", "a 0.90", 0.9)
    assert (second.label, second.predicted) == ("b", "b 0.60")


def test_of_a_number_the_distance_counts():
    rows = predictions([[50.0], [61.0]], np.array([60, 62], dtype=np.float32))
    first, second = find_worst(rows, AGE, NAMES)
    assert (first.label, first.predicted, first.error, second.error) == ("60 years", "50 years", 10, 1)


def test_a_recording_counts_once_with_its_worst_frame():
    rows = Predictions(
        np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0.6, 0.4, 0]]), np.zeros(3, int), np.zeros(3, int), np.array([0, 0, 1])
    )
    first, second = find_worst(rows, TASK, NAMES, np.array([0, 500, 1000]))
    assert (first.record, first.start, second.record, second.start) == ("r0", 500, "r1", 1000)
