"""Names from files control neither a terminal nor a spreadsheet."""

from __future__ import annotations

import json

import pytest

from clocs_core.report.visible import as_cell, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\u001b[31mred"),
        ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
        ("\x9b2J", "\\u009b2J"),
        ("over\rwritten", "over\\u000dwritten"),
        ("back\x08space\x7f\x00", "back\\u0008space\\u007f\\u0000"),
        ("left\u202eright\u2066", "left\\u202eright\\u2066"),
        ("file\udcff", "file\\udcff"),
        ("a line\nand\ta tab", "a line\nand\ta tab"),
        ("Lüneburg 心電図 µV — 'quoted' \\x", "Lüneburg 心電図 µV — 'quoted' \\x"),
    ],
)
def test_control_characters_are_shown_and_text_is_left_alone(text, shown):
    assert visible(text) == shown
    shown.encode("utf-8")


def test_json_stays_json():
    held = {"patient": "\x1b[2J\x9b", "name": "Lüneburg"}
    assert json.loads(visible(json.dumps(held, ensure_ascii=False))) == held


@pytest.mark.parametrize(
    "name",
    ["=HYPERLINK(A1)", "+1+1", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "-", "--5", "+49 30"],
)
def test_a_name_that_a_spreadsheet_would_compute_gets_an_apostrophe(name):
    assert as_cell(name) == "'" + name


@pytest.mark.parametrize("value", ["-5", "+3.5", "-1e-05", "-.5", -2.5, 7, "p-5", "a=b", "", "'=1", "II"])
def test_numbers_and_other_names_stay_as_they_are(value):
    assert as_cell(value) == str(value)
