"""The sheet as files: the same bytes every time, and nothing global is left behind."""

from io import BytesIO

import matplotlib
from PIL import Image

from clocs_core.report.sheet import DPI, label, line, printable, sheet, to_png, to_svg


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


def test_text_that_the_font_cannot_write_is_replaced_and_long_text_is_cut():
    assert printable("a\n b\u60a3") == "a b?"
    assert printable("x" * 30, 10) == "x" * 9 + "…"
