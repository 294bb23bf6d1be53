"""Figures 6 and 9 from the reports of runs: densities against a loop, and what is said where no histogram was kept."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest
from grid_folders import write_run
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.artifacts.reports import PatientSeparation
from clocs_core.contracts.grids import Condition
from clocs_core.grids.axes import Repeats
from clocs_core.grids.distances import distance_sheet, say_encoders, summarise_distances
from clocs_core.grids.histograms import density, draw_histograms
from clocs_core.grids.presets import Preset
from clocs_core.grids.results import Results

PLACE = Condition(method="cmsc", pretraining="physionet2020", downstream="physionet2020", protocol="linear")
SEEDS = Repeats(seeds=(0, 1))
PRESET = Preset(
    name="far", printed_in="Figure 6", title="Far", conditions=(PLACE,), figure="distances",
    needs_scores=False,
)  # fmt: skip


def distances(init: str, top: float, kept: bool = True) -> PatientSeparation:
    found = PatientSeparation(init=init, intra_mean=1.0, inter_mean=2.0, separation=0.8)
    return attrs.evolve(found, edges=(0.0, top / 2, top), intra=(3, 1), inter=(1, 3)) if kept else found


def results(out: Path, *kept: bool, places: tuple[Condition, ...] = (PLACE,)) -> Results:
    """Two seeds of every place. kept: whether the reports of each seed have histograms."""
    for place in places:
        for number, (run, has) in enumerate(zip(SEEDS.runs(place), kept, strict=True)):
            write_run(out, run, [distances(init, 2.0 + number, has) for init in ("cmsc", "random")])
    return Results(out)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any), st.floats(0.1, 9), st.floats(1, 3))
@settings(max_examples=40)
def test_a_density_on_other_edges_shares_bins_out_by_their_width(counts: list[int], top: float, wider: float) -> None:
    """Written out: what of every bin lies between two places. The whole is 1."""
    edges = [top * number / len(counts) for number in range(len(counts) + 1)]
    at = np.linspace(0, top * wider, 8)
    found = density(counts, edges, at)
    for place, said in enumerate(found):
        inside = 0.0
        for number, count in enumerate(counts):
            low, high = max(edges[number], at[place]), min(edges[number + 1], at[place + 1])
            inside += count * max(0.0, high - low) / (edges[number + 1] - edges[number])
        assert said == pytest.approx(inside / sum(counts) / (at[place + 1] - at[place]), abs=1e-9)
    assert float((found * np.diff(at)).sum()) == pytest.approx(1.0)


def test_every_encoder_has_a_panel_from_all_repetitions(tmp_path: Path) -> None:
    """Seeds have edges of their own, as far as their largest distance."""
    lines = summarise_distances([PLACE], SEEDS, results(tmp_path, True, True))
    assert [(line.name, [one.edges[-1] for one in line.found]) for line in lines] == [
        ("random", [2.0, 3.0]),
        ("cmsc", [2.0, 3.0]),
    ]
    (drawing,) = draw_histograms(PRESET, lines)
    assert drawing.name == "far-histograms"
    assert drawing.png.startswith(b"\x89PNG")
    assert drawing.svg.startswith(b"<?xml")
    assert "are not drawn" not in drawing.caption


def test_leads_and_options_have_lines_of_their_own(tmp_path: Path) -> None:
    """Four leads and twelve are other encoders: one must not stand for both. Random knows no method's options."""
    more = [attrs.evolve(PLACE, leads="12"), attrs.evolve(PLACE, options=("decay=0.5",))]
    places = (PLACE, *more)
    found = summarise_distances(places, SEEDS, results(tmp_path, True, True, places=places))
    assert say_encoders(found) == [
        *("4 leads, random, E = 128", "4 leads, cmsc, E = 128"),
        *("12 leads, random, E = 128", "12 leads, cmsc, E = 128"),
        "4 leads, cmsc decay=0.5, E = 128",
    ]
    assert [row[1] for row in distance_sheet(found).rows] == ["4", "4", "12", "12", "4"]
    assert say_encoders(found[:2]) == ["random, E = 128", "cmsc, E = 128"]


@pytest.mark.parametrize(("kept", "said"), [((True, False), "2 of 4"), ((False, False), "4 of 4")])
def test_runs_of_before_histograms_were_kept_are_counted_and_said(
    kept: tuple[bool, bool], said: str, tmp_path: Path
) -> None:
    """The figure of one seed must not pass for that of both."""
    (drawing,) = draw_histograms(PRESET, summarise_distances([PLACE], SEEDS, results(tmp_path, *kept)))
    assert drawing.caption.endswith(f"{said} were measured before histograms were kept, and are not drawn.")
    assert draw_histograms(PRESET, ()) == ()
