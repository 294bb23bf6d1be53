"""The page of neighbours: whole, escaped, and without the network."""

from __future__ import annotations

import numpy as np

from clocs_core.report.neighbours import render_neighbours
from clocs_core.report.traces import neighbour_traces

HOSTILE = "<script>alert(1)</script>"


def picture(rows=3, columns=2, in_all=12):
    signal = np.random.default_rng(0).normal(size=(rows, columns, 200))
    signal[0, 1] = np.nan
    titles = [HOSTILE, "$x_{$", "患者 7"][:rows]
    return neighbour_traces(signal, titles, ["II", "V1"], 100.0, "mV", in_all)


def test_names_from_files_are_text_and_nothing_else():
    """A record id comes from a file that anybody may have written."""
    page = render_neighbours(HOSTILE, HOSTILE, ("rank", HOSTILE), [("1", HOSTILE)], picture())
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 5
    assert 'src="data:image/png;base64,' in page


def test_a_picture_says_what_it_shows_and_what_it_leaves_out():
    assert picture().caption == (
        "The query on top, its neighbours below it, the nearest first; in mV, the same scale along a row. "
        "The first 2 of 12 channels."
    )
    assert "first 2" not in picture(in_all=2).caption
    assert picture().png == picture().png
