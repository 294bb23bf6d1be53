"""The page about the released code shows what the code here computes."""

from __future__ import annotations

from pathlib import Path

import pytest
import released_variant

from clocs_plugins.patient_contrast import clocs_methods

PAGE = (Path(__file__).parents[3] / "docs" / "released.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def computed():
    return [released_variant.row(*case) for case in released_variant.CASES]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_of_losses_is_what_the_script_prints(computed):
    """A number that nobody can make again is worth nothing; another machine may round the last digit otherwise."""
    printed = released_variant.as_markdown(computed).splitlines()
    page = PAGE.splitlines()
    first = page.index(printed[0])
    shown = page[first : first + len(printed) + 1]
    assert shown.pop() == ""  # the table ends where the script's does
    assert shown[1] == printed[1]
    for ours, theirs in zip(printed[2:], shown[2:], strict=True):
        assert [len(cell) for cell in cells(theirs)] == [len(cell) for cell in cells(ours)]
        assert [float(cell) for cell in cells(theirs)] == pytest.approx([float(cell) for cell in cells(ours)], abs=2e-4)


def test_the_rows_show_what_the_text_says_of_them(computed):
    """Half without repeats, a quarter on average over both orders, and two views with a gradient whatever there is."""
    for _, twice, views, paper, released, reverse, reached, agreement in computed:
        assert reached == 2
        if not twice:
            assert released == pytest.approx(paper / 2)
            assert agreement == pytest.approx(1)
        elif views == 2:
            assert (released + reverse) / 2 == pytest.approx(paper / 4)
            assert released != pytest.approx(paper / 4, rel=1e-3)
            assert 0.9 < agreement < 0.999
        else:
            assert agreement < 0.5


def test_each_departure_of_the_variant_can_be_set_by_itself():
    """The page names an option for each, and these are what the variant sets."""
    table = PAGE[PAGE.index("## What the variant reproduces") : PAGE.index("## The two formulas")]
    for method in clocs_methods():
        for preset in method.variants["released"].presets.values():
            for name, value in preset.items():
                assert f"`-o {name}={str(value).lower()}`" in table
