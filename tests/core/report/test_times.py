"""How long the stages of a run took, in words."""

from __future__ import annotations

import pytest

from clocs_core.report.times import show_duration, stage_times, time_lines, time_section, whole_time

SPENT = {"start": 2.04, "pretrain": 65.0, "pretrain/training": 60.0, "pretrain/validation": 4.0, "closing": 0.0}


def test_a_stage_is_shown_with_its_parts():
    assert stage_times(SPENT) == [
        ("start", "2.0 s", ""),
        ("pretrain", "1 min 05 s", "training 1 min 00 s, validation 4.0 s"),
        ("closing", "0.0 s", ""),
    ]


def test_each_stage_has_a_row_with_its_parts():
    (table,) = time_section(SPENT, {"start": "start it"}).tables
    assert list(table.rows) == [
        ("start it", "2.0 s", ""),
        ("pretrain", "1 min 05 s", "training 1 min 00 s, validation 4.0 s"),
        ("closing", "0.0 s", ""),
    ]
    assert whole_time(SPENT) == "1 min 07 s"


def test_each_stage_has_a_line():
    assert time_lines(SPENT).splitlines() == [
        "time of each stage:",
        "  start     2.0 s",
        "  pretrain  1 min 05 s (training 1 min 00 s, validation 4.0 s)",
        "  closing   0.0 s",
    ]


@pytest.mark.parametrize(
    ("seconds", "shown"), [(8.21, "8.2 s"), (59.94, "59.9 s"), (65, "1 min 05 s"), (7380, "2 h 03 min")]
)
def test_a_duration_is_written_for_a_person(seconds, shown):
    assert show_duration(seconds) == shown
