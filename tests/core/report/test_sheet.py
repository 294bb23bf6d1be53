"""The sheet as files: the same bytes every time, and nothing global is left behind."""

from io import BytesIO
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from clocs_core.report.sheet import DPI, PALETTE, label, legend, legend_beside, line, printable, sheet, to_png, to_svg


def drawn():
    figure, (axes,) = sheet(1, 1, 2.0, 1.0)
    line(axes, [1, 2], [0.5, 0.25], "#0072B2", "$x$")
    label(axes, "title", "epoch", "y")
    return figure


def test_both_formats_are_the_same_every_time_and_hold_no_date():
    """Files in a repository change where numbers do, and nowhere else."""
    before = matplotlib.rcParams["svg.hashsalt"]
    assert to_png(drawn()) == to_png(drawn())
    first = to_svg(drawn(), "loss")
    assert first == to_svg(drawn(), "loss")
    assert b"<dc:date>" not in first
    assert first != to_svg(drawn(), "other")  # two on one page do not share the ids inside
    assert matplotlib.rcParams["svg.hashsalt"] == before


def test_a_sheet_has_the_size_that_was_asked_for():
    with Image.open(BytesIO(to_png(drawn()))) as image:
        assert image.size == (2 * DPI, DPI)


def test_few_colours_change_no_colour_that_one_sees_and_leave_white_white():
    figure, (axes,) = sheet(1, 1, 6.0, 3.0)
    for number, colour in enumerate(PALETTE):
        axes.fill_between([number, number + 1], 0.0, 1.0, color=colour, linewidth=0)
    with Image.open(BytesIO(to_png(figure))) as image:
        few = np.asarray(image.convert("RGB")).astype(int)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    every = np.asarray(canvas.buffer_rgba())[..., :3].astype(int)
    assert (few[(every == 255).all(-1)] == 255).all()
    assert np.abs(few - every).max() <= 32


def test_text_that_the_font_cannot_write_is_replaced_and_long_text_is_cut():
    assert printable("a\n b\u60a3") == "a b?"
    assert printable("x" * 30, 10) == "x" * 9 + "…"


@pytest.mark.parametrize("beside", [False, True])
def test_names_are_neither_mathematics_nor_xml(beside):
    """A channel may be called "$\\foo$", which is no formula, and a patient "--><script>"."""
    name = "$\\foo$ --><script>alert(1)</script>&"
    figure, (axes,) = sheet(1, 1, 4.0, 3.0)
    line(axes, [1, 2], [0.5, 0.25], "#0072B2", name)
    label(axes, name, name, name)
    if beside:
        legend_beside(axes, [name])
    else:
        legend(axes)
    assert to_png(figure).startswith(b"\x89PNG")
    drawing = to_svg(figure, "loss")
    assert b"<script" not in drawing
    assert not [one for one in ElementTree.fromstring(drawing).iter() if "script" in one.tag]
