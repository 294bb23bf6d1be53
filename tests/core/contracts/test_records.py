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
    with pytest.raises(ValueError, match="choose one of source_samples, frames_per_record"):
        Framing(frames_per_record=1, source_samples=50)


def test_whole_recordings_are_stretched_always_or_where_they_last_as_long_as_frames_of_a_rate():
    assert not Framing(100, sampling_rate=10.0).stretches(1000, 100.0)
    assert Framing(100, frames_per_record=1).stretches(7, 100.0)
    ten_seconds = Framing(100, frames_per_record=1, sampling_rate=10.0)
    lengths = {989: False, 990: True, 999: True, 1000: True, 1010: True, 1011: False, 60_000: False}
    assert {samples: ten_seconds.stretches(samples, 100.0) for samples in lengths} == lengths


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


def test_what_was_wrong_with_the_first_of_a_reason_is_said():
    """A kind of error alone tells nobody what to do."""
    first = DropReport.of([Drop("unreadable: X", "A1", why="it is empty"), Drop("unreadable: X", "A2", why="else")])
    assert first.reasons() == "2 unreadable: X (A1, A2: it is empty)"
    later = DropReport.of([Drop("unreadable: X", "B1", why="it is cut off"), Drop("unreadable: Y", "B2", why="odd")])
    assert (first + later).reasons() == "3 unreadable: X (A1, A2, …: it is empty), 1 unreadable: Y (B2: odd)"
    assert (DropReport.of([Drop("unreadable: X", "A0")]) + later).why["unreadable: X"] == "it is cut off"


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
