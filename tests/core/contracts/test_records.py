"""Records of a data set refuse what makes no sense, and count what was left out."""

from __future__ import annotations

import numpy as np
import pytest

from clocs_core.contracts.records import Drop, DropReport, Framing, Record, Task


def record(samples, **other):
    return Record("p", "r", ("I", "II"), "mV", 100.0, samples, **other)


def test_samples_must_have_a_row_for_every_channel():
    with pytest.raises(ValueError, match=r"record r has samples of shape \(3, 5\), expected .* 2 channels \(I, II\)"):
        record(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="gain must be a positive number, got 0"):
        record(np.zeros((2, 5)), gain=0)


def test_missing_samples_are_nan_in_the_unit():
    """Among integers the lowest value is missing; among floats whatever is not finite."""
    counts = record(np.array([[200, -32768], [-400, 0]], dtype=np.int16), gain=200.0)
    np.testing.assert_array_equal(counts.physical(), [[1, np.nan], [-2, 0]])
    floats = record(np.array([[1.5, np.inf], [np.nan, -32768.0]]))
    np.testing.assert_array_equal(floats.missing(), [[False, True], [True, False]])


def test_a_framing_has_one_time_scale():
    with pytest.raises(ValueError, match="choose one of sampling_rate, source_samples"):
        Framing(sampling_rate=100.0, source_samples=50)


def test_a_task_is_of_a_known_kind():
    with pytest.raises(ValueError, match="kind"):
        Task("t", ("a",), kind="all_of")


def test_drops_are_counted_by_reason_with_the_first_names():
    first = DropReport.of([Drop("flat", "A1", "V2"), Drop("flat", "A7"), Drop("NaN", "A3")])
    assert first.sentence() == "dropped 3: 2 flat (A1 V2, A7), 1 NaN (A3)"
    both = first + DropReport.of([Drop("flat", f"B{n}") for n in range(20)])
    assert (both.counts, len(both.first["flat"])) == ({"flat": 22, "NaN": 1}, DropReport.NAMED)
    assert both.reasons() == "22 flat (A1 V2, A7, …), 1 NaN (A3)"
    assert DropReport().sentence() == "nothing dropped"


@pytest.mark.parametrize(
    ("shortest", "parts", "window"),
    [(500, 2, 250), (1000, 2, 500), (1000, 4, 250), (4999, 2, 2499), (5000, 2, None), (5000, 4, 1250), (1, 2, 1)],
)
def test_a_framing_is_fitted_to_short_recordings_only(shortest, parts, window):
    """Windows of a part of the shortest, so that it gives as many frames as a method needs."""
    assert Framing().fitted(shortest, parts) == Framing(source_samples=window)


def test_a_time_scale_that_was_asked_for_stays():
    for asked in (Framing(sampling_rate=100), Framing(source_samples=900), Framing(frames_per_record=2)):
        assert asked.fitted(500, 2) == asked
