"""The page of neighbours: whole, escaped, without the network, and drawn from the frames that it names."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from fake_frames import fake_representations
from fake_recordings import CHANNELS

from clocs_core.inference.similar import find_similar
from clocs_core.report.neighbours import draw_similar, render_neighbours
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


# -------------------------------------------------------------------------------------------------------------- drawing


@pytest.mark.parametrize(("level", "together"), [("recording", False), ("frame", False), ("frame", True)])
def test_query_and_neighbours_are_drawn(cohort, monkeypatch, level, together):
    """The signals are those of the frames that are named, in physical units; the flat channel is a gap."""
    drawn = {}
    monkeypatch.setattr(
        "clocs_core.report.neighbours.neighbour_traces",
        lambda signal, titles, names, rate, unit, every: drawn.update(
            signal=signal, titles=titles, names=names, rate=rate, unit=unit, every=every
        ),
    )
    prepared = attrs.evolve(cohort.evaluate, gain=np.linspace(1, 2, len(cohort.evaluate.gain)))
    found = fake_representations(attrs.evolve(cohort, evaluate=prepared), together=together)
    similar = find_similar(found, "r1-0", level, "euclidean", 3)
    draw_similar(found, similar)
    single = level == "frame" and not together
    for place, signal in zip([similar.query, *(one.place for one in similar.neighbours)], drawn["signal"], strict=True):
        frame = found.rows.frame[place.row]
        columns = [CHANNELS.index(place.channel)] if single else [0, 1, 2]
        expected = np.where(prepared.valid[frame][columns, None], prepared.frames[frame][columns], np.nan)
        np.testing.assert_allclose(signal, expected / prepared.gain[frame])
    assert (drawn["rate"], drawn["unit"], drawn["names"]) == (100.0, "mV", [""] if single else list(CHANNELS))
    assert drawn["titles"][0].startswith("query: r1-0, ")
    first = similar.neighbours[0]
    assert drawn["titles"][1].startswith(f"1. at {first.distance:.4g}: {first.place.record}, ")
    assert f"patient {first.place.patient}, {first.place.label} ({first.place.part})" in drawn["titles"][1]
    if level == "recording":
        assert np.isnan(drawn["signal"][0, 1]).all()


def test_the_picture_is_a_png(cohort):
    found = fake_representations(cohort)
    picture = draw_similar(found, find_similar(found, "r1-0", "recording", "euclidean", 2))
    assert picture.png[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture.caption.startswith("The query on top")
