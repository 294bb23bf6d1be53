"""Pages of sections: one file, no network, nothing that a hostile name could run."""

from __future__ import annotations

import re

from clocs_core.report.blocks import Section, Table
from clocs_core.report.plain_page import render_sections

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
