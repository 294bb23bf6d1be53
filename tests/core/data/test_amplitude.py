"""The constant of a data set: the deviation of its training patients' frames, and of no other's."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from fake_frames import fake_prepared
from fake_recordings import CHANNELS

from clocs_core.data.amplitude import measure_deviation
from clocs_core.errors import DataError


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return fake_prepared(tmp_path_factory.mktemp("prepared"))


def by_loops(prepared, patients, channels):
    squares, count = 0.0, 0
    for frame, number in enumerate(prepared.record):
        for name in channels:
            column = prepared.channels.index(name)
            if prepared.records[number][1] in patients and prepared.valid[frame, column]:
                values = [float(value) / prepared.gain[frame] for value in prepared.frames[frame, column]]
                mean = sum(values) / len(values)
                squares += sum((value - mean) ** 2 for value in values)
                count += len(values)
    return (squares / count) ** 0.5


@pytest.mark.parametrize("channels", [CHANNELS, CHANNELS[1:]])
@pytest.mark.parametrize("patients", [{"p0", "p1"}, {"p3"}])
def test_the_deviation_is_that_of_a_plain_loop_over_usable_lead_frames(prepared, patients, channels, monkeypatch):
    """Some frames at a time give the same: a large data set does not fit into memory."""
    expected = by_loops(prepared, patients, channels)
    assert not prepared.valid.all()  # a flat lead is left out
    found = measure_deviation(prepared, frozenset(patients), channels)
    assert found == pytest.approx(expected, rel=1e-6)
    monkeypatch.setattr("clocs_core.data.amplitude._AT_ONCE", 100)
    assert measure_deviation(prepared, frozenset(patients), channels) == found


def test_counts_are_divided_by_their_gain(prepared):
    counted = attrs.evolve(prepared, gain=np.full_like(prepared.gain, 4.0))
    patients = frozenset({"p0"})
    found = measure_deviation(counted, patients, CHANNELS)
    assert found == pytest.approx(measure_deviation(prepared, patients, CHANNELS) / 4, rel=1e-6)


def test_nothing_to_measure_is_refused_with_the_way_out(prepared):
    with pytest.raises(DataError, match=r"training patients' frames, and there is none\. Give a number: `constant=X`"):
        measure_deviation(prepared, frozenset({"nobody"}), CHANNELS)
    flat = attrs.evolve(prepared, frames=np.zeros_like(prepared.frames))
    with pytest.raises(DataError, match="all of them are flat"):
        measure_deviation(flat, frozenset({"p0"}), CHANNELS)
