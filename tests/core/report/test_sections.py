"""Sections of plugins: tables and pictures are made text and rendered; one that fails is left out with a warning."""

from __future__ import annotations

import pytest
from fake_offers import PatientOptions, sections

from clocs_core import Picture, ReportSection, ReportTable
from clocs_core.plan.data import Chosen
from clocs_core.report.sections import PNG, make_sections
from clocs_core.testing.listeners import _findings


def made(make):
    warned = []
    offer = ReportSection(name="mine", summary="s", make=make)
    good = Chosen(sections()[0], PatientOptions(), "plugin 'good' (good 1.0)")
    found = make_sections([Chosen(offer, None, "plugin 'mine' (mine 1.0)"), good], _findings(), warned.append)
    return found, warned


def test_a_section_has_its_tables_as_text_and_its_pictures():
    table = ReportTable("Scores", ["init", "value"], [["m", 0.81234], ["r", 2]])
    (mine, other), warned = made(lambda _options, _findings: [table, Picture("p", "t", "c", PNG + b"rest")])
    assert mine.tables[0].rows == (("m", "0.812"), ("r", "2"))
    assert (mine.title, mine.pictures[0].name) == ("mine", "p")
    assert other.title == "Some patients"
    assert other.tables[0].rows == (("p0", "2", "0.123"), ("p1", "2", "0.123"))
    assert warned == []


def fails(_options, _findings):
    raise KeyError("label")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (fails, "KeyError: 'label'"),
        (lambda *_: ["<b>"], "TypeError: a section must return a list of ReportTable and Picture, got '<b>'"),
        (lambda *_: [Picture("p", "t", "c", b"GIF89a")], "ValueError: picture 'p' is no PNG"),
        (
            lambda *_: [ReportTable("t", ["a"], [[1, 2]])],
            "ValueError: table 't' has a row of 2 cells, expected 1",
        ),
        (lambda *_: None, "TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_a_section_that_fails_is_left_out_and_named_and_the_others_are_made(make, problem):
    (other,), (warning,) = made(make)
    assert other.name == "patients"
    start = "Section 'mine' of plugin 'mine' (mine 1.0) is left out of the report: "
    assert warning.startswith(start + problem)


def test_an_empty_section_is_left_out_without_a_word():
    (other,), warned = made(lambda _options, _findings: [])
    assert (other.name, warned) == ("patients", [])
