"""Signals are drawn on ruled paper: one scale for a row, and a caption that says what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from clocs_core.report import traces as module
from clocs_core.report.traces import neighbour_traces, traces


@pytest.fixture
def figures(monkeypatch):
    """The figures that are made into pictures."""
    kept, real = [], module.picture

    def keep(figure, *words):
        kept.append([(axes.get_xlim(), axes.get_ylim(), len(axes.lines)) for axes in figure.axes])
        return real(figure, *words)

    monkeypatch.setattr(module, "picture", keep)
    return kept


def test_the_views_of_an_instance_share_a_scale_and_instances_do_not(figures):
    signal = np.zeros((2, 2, 101))
    signal[0, 1], signal[1, 0] = np.linspace(0, 4, 101), np.linspace(0, 100, 101)
    drawn = traces(signal, ["a", "b"], ["x", "y"], sampling_rate=50.0, views_in_all=3)
    ((first, second, third, _),) = figures
    assert first[1] == second[1] != third[1]
    assert first[0] == (0, 2.0)  # seconds
    assert drawn.caption.endswith("The first 2 of 3 views.")
    assert drawn.png.startswith(b"\x89PNG")


def test_a_channel_that_cannot_be_used_leaves_its_place_empty(figures):
    signal = np.full((1, 2, 10), np.nan)
    drawn = neighbour_traces(signal, ["query"], ["I", "II"], None, "", channels_in_all=2)
    assert figures[0][0][1] == (-0.08, 1.16)
    assert "in their own unit" in drawn.caption
    assert "The first" not in drawn.caption
