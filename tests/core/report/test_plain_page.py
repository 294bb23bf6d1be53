"""Pages of sections: one file, no network, nothing that a hostile name could run."""

from __future__ import annotations

import re

import pytest

from clocs_core.contracts.scores import Comparison, Score
from clocs_core.report.blocks import Section, Table
from clocs_core.report.plain_page import comparison_table, render_sections, summary_section

EVIL = "<script>alert('x')</script>\" onload=\"y"


def test_every_text_is_escaped_and_nothing_is_fetched():
    table = Table(title=EVIL, headings=(EVIL,), rows=[(EVIL,)], classes={(0, 0): "above-text"})
    section = Section(name="a", title=EVIL, sentences=[EVIL], notes=[EVIL], tables=[table], text=EVIL, outcome="above")
    page = render_sections(EVIL, EVIL, {EVIL: EVIL}, [section])
    assert "<script" not in page
    assert ' onload="' not in page
    assert page.count("&lt;script&gt;") > 8
    assert '<td class="above-text">' in page
    assert not re.search(r"https?://", page)
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_pages_follow_the_dark_mode_pictures_too():
    page = render_sections("a", "b", {}, [])
    assert "@media (prefers-color-scheme: dark)" in page
    assert re.search(r"img \{ filter: invert", page)


def difference(low: float, high: float) -> Comparison:
    return Comparison("m", "random", "linear", "d", 1.0, "auroc", "record", (low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("low", "high", "outcome"), [(0.1, 0.3, "above"), (-0.3, -0.1, "below"), (-0.1, 0.1, "undecided")]
)
def test_the_summary_and_the_table_colour_a_difference_by_its_interval(low, high, outcome):
    one = difference(low, high)
    table = comparison_table("Differences", [one])
    (place,) = table.classes
    assert table.classes[place] == f"{outcome}-text"
    score = Score("m", "linear", "d", 1.0, "auroc", "record", 0.8, 0.7, 0.9)
    summary = summary_section([score], [one], ["a note"])
    assert (summary.outcome, summary.notes) == (outcome, ["a note"])
