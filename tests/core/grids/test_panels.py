"""A panel of a figure holds what can be compared in it, and its title says what tells it from the others."""

from __future__ import annotations

import attrs
import pytest
from matplotlib.figure import Figure as Sheet

from clocs_core.contracts.grids import Condition, Figure
from clocs_core.grids.drawing import Drawing
from clocs_core.grids.figures import draw_scores
from clocs_core.grids.page import score_section, section_markdown
from clocs_core.grids.panels import DIMENSION, LABELS, panels_of
from clocs_core.grids.presets import Preset
from clocs_core.grids.summary import Line, Spread, Summary

PLACE = Condition(method="cmsc", pretraining="chapman", downstream="cardiology", protocol="finetune")
ELSEWHERE = [
    {"pretraining": "ptbxl", "printed_pretraining": "ptbxl"},
    {"downstream": "physionet2017", "printed_downstream": "physionet2017"},
    {"protocol": "linear"},
    {"leads": "12"},
    {"embedding_dim": 32},
    {"label_fraction": 0.25},
    {"part": "validation"},
    {"printed_pretraining": "physionet2020"},
]


def line(**changes: object) -> Line:
    score = Spread(values=((0.7,),), mean=0.7, sd_seeds=None, sd_splits=None)
    about = {"interval": None, "gain": None, "gain_value": None, "printed": None, "done": 1, "wanted": 1}
    return Line(condition=attrs.evolve(PLACE, **changes), spread=score, **about)  # type: ignore[arg-type]


@pytest.mark.parametrize("change", ELSEWHERE)
def test_what_differs_in_more_than_the_method_has_a_panel_of_its_own(change: dict[str, object]) -> None:
    """Else two scores stand under one name, or a line runs through points that have nothing to do with each other."""
    lines = [line(), line(method="random"), line(**change), line(options=("decay=0.5",))]
    panels = panels_of(lines)
    assert [len(panel.lines) for panel in panels] == [3, 1]
    assert panels[0].title != panels[1].title


@pytest.mark.parametrize("change", [*ELSEWHERE[:5], *ELSEWHERE[6:]])
def test_only_what_runs_along_the_axis_is_joined(change: dict[str, object]) -> None:
    """With several E, the curves over F of each are apart; and the other way round."""
    shares = [line(label_fraction=share, **more) for share in (0.25, 0.5, 1.0) for more in ({}, change)]
    assert [len(panel.lines) for panel in panels_of(shares, LABELS)] == [3, 3]
    dims = [line(embedding_dim=dim, label_fraction=share) for dim in (32, 64) for share in (0.25, 1.0)]
    assert [panel.title for panel in panels_of(dims, DIMENSION)] == [
        "chapman → cardiology, F = 0.25",
        "chapman → cardiology, F = 1",
    ]


def test_a_title_says_no_more_than_it_must() -> None:
    """The data sets; for which of the paper's they stand in only where one does for several."""
    stand_in = {"pretraining": "ptbxl", "downstream": "ptbxl"}
    twice = [line(**stand_in, printed_pretraining=name, printed_downstream=name) for name in ("chapman", "cardiology")]
    assert [panel.title for panel in panels_of(twice)] == ["ptbxl, for chapman", "ptbxl, for cardiology"]
    assert [panel.title for panel in panels_of(twice[:1])] == ["ptbxl"]


def drawn(figure: Figure, lines: list[Line], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of the panels of a figure of these lines, with the name of the axis below."""
    grid = [axes for axes in sheet_of(figure, lines, monkeypatch).axes if axes.get_visible()]
    titles = [" ".join(axes.get_title("left").split()) for axes in grid]
    names = [axes.get_xlabel() for axes in grid]
    return [f"{title} | {name}" if name else title for title, name in zip(titles, names, strict=True)]


def sheet_of(figure: Figure, lines: list[Line], monkeypatch: pytest.MonkeyPatch) -> Sheet:
    """A figure of these lines, before it is written, which takes a second."""
    kept: list[Sheet] = []

    def finish(found: Sheet, *words: str) -> Drawing:
        kept.append(found)
        return Drawing(*words, b"", b"")

    monkeypatch.setattr("clocs_core.grids.figures.finish", finish)
    preset = Preset(name="x", title="X", conditions=(), figure=figure)
    assert len(draw_scores(preset, Summary(tuple(lines), ()), "auroc")) == 1
    return kept[-1]


def test_every_figure_keeps_dimensions_and_shares_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a flag adds to a figure of the paper makes panels; it does not go into the same line or dot."""
    grid = [
        line(method=method, embedding_dim=dim, label_fraction=share)
        for dim in (32, 64)
        for share in (0.5, 1.0)
        for method in ("random", "cmsc")
    ]
    over_shares = [f"chapman → cardiology, E = {dim} | {LABELS.title}" for dim in (32, 64)]
    titles = drawn("less", grid, monkeypatch)
    assert titles == over_shares
    titles = drawn("dimension", grid, monkeypatch)
    assert titles == [f"chapman → cardiology, F = {share:g} | {DIMENSION.title}" for share in (0.5, 1.0)]
    perturbed = [
        attrs.evolve(one, condition=attrs.evolve(one.condition, options=("perturbations=a,b",))) for one in grid
    ]
    titles = drawn("perturbations", perturbed, monkeypatch)
    assert titles == [f"cmsc, chapman → cardiology, E = {dim}, F = {share:g}" for dim in (32, 64) for share in (0.5, 1)]


def test_the_legend_names_every_method_though_the_first_panel_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with a look of its own, below the panels and not over them."""
    names = ["cmsc", "cmlc", "cmsmlc", "simclr", "byol", "mt-ssl", "supervised", "vicreg"]
    lines = [line(method=name, label_fraction=share) for name in ["random", "cmsc"] for share in (0.5, 1.0)]
    lines += [
        line(method=name, embedding_dim=64, label_fraction=share) for name in ["random", *names] for share in (0.5, 1.0)
    ]
    figure = sheet_of("", lines, monkeypatch)
    assert all(axes.get_legend() is None for axes in figure.axes)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["random", *names]
    looks = {(handle.get_color(), handle.get_marker()) for handle in legend.legend_handles}
    assert len(looks) == 1 + len(names)


def test_a_long_title_has_lines_that_end_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it runs over its neighbour."""
    stand_in = {"pretraining": "ptbxl", "downstream": "physionet2017"}
    lines = [
        line(**stand_in, printed_pretraining=name, printed_downstream="physionet2017", label_fraction=share)
        for name in ("chapman", "physionet2020")
        for share in (0.5, 1.0)
    ]
    titles = [axes.get_title("left").split("\n") for axes in sheet_of("", lines, monkeypatch).axes]
    assert titles == [
        ["ptbxl → physionet2017,", f"for {name} → physionet2017"] for name in ("chapman", "physionet2020")
    ]


def test_a_table_says_first_which_lines_are_no_transfer() -> None:
    """One data set in place of two of the paper, in either direction. Not linear evaluation, nor a true transfer."""
    preset = Preset(name="x", title="X", conditions=())
    there = {"pretraining": "ptbxl", "downstream": "ptbxl"}
    both = ("chapman", "physionet2020")
    to_and_fro = [line(**there, printed_pretraining=a, printed_downstream=b) for a, b in (both, both[::-1])]
    section = score_section(preset, Summary(tuple(to_and_fro), ()), "auroc")
    (said,) = section.first
    assert said.startswith("ptbxl stands in for both chapman and physionet2020.")
    assert section_markdown(section, "png")[0].strip() == said
    others = [line(**there, printed_pretraining="chapman", printed_downstream="chapman"), line(pretraining="ptbxl")]
    assert score_section(preset, Summary(tuple(others), ()), "auroc").first == ()


def test_a_comparison_counts_once_though_it_stands_for_two_and_only_where_it_is_a_transfer() -> None:
    preset = Preset(name="x", title="X", conditions=(), claim=("cmsc", "simclr"))
    lines = [
        line(method=method, pretraining="ptbxl", downstream=downstream, printed_pretraining=a, printed_downstream=b)
        for a in ("chapman", "physionet2020")
        for downstream, b in (
            ("cardiology", "cardiology"),
            ("ptbxl", "chapman" if a == "physionet2020" else "physionet2020"),
        )
        for method in ("cmsc", "simclr")
    ]
    (said,) = score_section(preset, Summary(tuple(lines), ()), "auroc").notes
    assert said.startswith("The mean of cmsc is higher than that of simclr in 0 of 1 conditions here")
