"""A section as HTML: its parts in their order, pictures inside."""

from __future__ import annotations

import re

from clocs_core.contracts.events import Picture
from clocs_core.report.blocks import Section, Table, css_width, data_uri, render_section

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8) + (1080).to_bytes(4, "big")


def test_a_section_has_its_parts_in_their_order():
    table = Table(title="T", headings=("h",), rows=[("cell",)], caption="about the table")
    section = Section(
        name="n", title="S", sentences=["first"], notes=["note"], tables=[table], pictures=[Picture("p", "P", "c", PNG)]
    )
    text = render_section(section)
    order = ('id="n"', "first", "note", ">T<", "about the table", "cell", 'id="picture-p"', 'width="720"')
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert re.search(r'alt="P\. c"', text)


def test_a_picture_is_inside_the_page_at_two_thirds_of_its_dots():
    assert data_uri(b"abc") == "data:image/png;base64,YWJj"
    assert css_width(PNG) == 720
