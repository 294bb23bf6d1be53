"""Render the report as one HTML file that opens offline, without scripts, with its pictures inside."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TypeVar

import attrs
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from clocs_core.artifacts.metrics import EpochRow
from clocs_core.artifacts.reports import Report
from clocs_core.contracts.events import Picture
from clocs_core.contracts.scores import Score
from clocs_core.report.blocks import Section, css_width, data_uri, render_section
from clocs_core.report.sections import MadeSection
from clocs_core.report.tables import (
    COMPARISON_HEADINGS,
    RETRIEVAL_HEADINGS,
    SCORE_HEADINGS,
    comparison_rows,
    comparison_sentence,
    outcome,
    retrieval_rows,
    retrieval_sentence,
    score_rows,
    show_number,
    verdict,
    wide_score_rows,
)
from clocs_core.report.times import time_section, whole_time

T = TypeVar("T")

# A phone shows the first columns: the weights, the value and its interval. What was measured comes after them.
SCORE_ORDER = (1, 5, 6, 3, 4, 0, 2)
COMPARISON_ORDER = (0, 1, 6, 7, 8, 9, 4, 5, 2, 3)

_SECTION_OF = {
    "scores": "scores",
    "loss": "training",
    "health": "training",
    "embedding-by-label": "embeddings",
    "embedding-by-patient": "embeddings",
    "distances": "embeddings",
    "traces": "signals",
}


@attrs.frozen
class _Whisker:
    """A score on a scale from 0 to 1, in per cent of its width."""

    low: float
    width: float
    value: float
    is_control: bool


def render(
    report: Report,
    rows: Sequence[EpochRow],
    pictures: Sequence[Picture],
    sections: Sequence[MadeSection] = (),
    clinical: Sequence[Section] = (),
) -> str:
    """Return the page as text, with the results for clinicians, and with the sections of plugins.

    Every name in it is escaped: patient ids come from files that are not trusted.
    """
    return page_template("page.html.jinja").render(
        report=report,
        style=page_style(),
        part=report.settings.get("evaluate", {}).get("part", "test"),
        verdict=verdict(report.scores, report.comparisons, report.notes),
        score_headings=_moved(SCORE_HEADINGS, SCORE_ORDER),
        scores=[(_moved(row, SCORE_ORDER), _whisker(one)) for row, one in _beside(score_rows, report.scores)],
        comparison_headings=_moved(COMPARISON_HEADINGS, COMPARISON_ORDER),
        comparisons=[
            (_moved(row, COMPARISON_ORDER), outcome(one)) for row, one in _beside(comparison_rows, report.comparisons)
        ],
        other_encoders=[
            (one, *wide_score_rows(one.scores), [comparison_sentence(each) for each in one.comparisons])
            for one in report.other_encoders
            if one.scores
        ],
        retrieval_headings=RETRIEVAL_HEADINGS,
        retrieval=retrieval_rows(report.retrieval),
        retrieval_sentence=retrieval_sentence(report.retrieval, report.method),
        epoch_headings=[name.replace("_", " ") for row in rows[:1] for name in row.cells()],
        epochs=[_epoch_cells(row) for row in rows],
        pictures=_by_section(pictures),
        sections=sections,
        clinical=clinical,
        whole_time=whole_time(report.seconds),
        time=time_section(report.seconds),
    )


@cache
def page_template(name: str) -> Template:
    """Compile a template of this folder, once: that takes longer than to fill it in."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"count": _count, "toml": show_toml, "number": show_number}
    environment.filters |= {"css_width": css_width, "data_uri": data_uri, "block": render_section}
    return environment.from_string(files("clocs_core.report").joinpath(name).read_text("utf-8"))


def page_style() -> Markup:
    """Return the style sheet that all pages share."""
    return Markup(files("clocs_core.report").joinpath("page.css").read_text("utf-8"))


def _beside(
    make: Callable[[Sequence[T]], Sequence[Sequence[str]]], held: Sequence[T]
) -> Iterator[tuple[Sequence[str], T]]:
    """Yield the row of each of several results, and the result."""
    return zip(make(held), held, strict=True)


def _moved(cells: Sequence[str], order: Sequence[int]) -> tuple[str, ...]:
    return tuple(cells[place] for place in order)


def _by_section(pictures: Sequence[Picture]) -> dict[str, list[Picture]]:
    """Group the pictures by their section; pictures with an unknown name go to `more`."""
    sections: dict[str, list[Picture]] = {name: [] for name in (*_SECTION_OF.values(), "more")}
    for picture in pictures:
        sections[_SECTION_OF.get(picture.name, "more")].append(picture)
    return sections


def _whisker(score: Score) -> _Whisker | None:
    if not 0 <= score.low <= score.value <= score.high <= 1:  # also for NaN
        return None
    return _Whisker(100 * score.low, 100 * (score.high - score.low), 100 * score.value, score.is_control)


def _epoch_cells(row: EpochRow) -> list[str]:
    return [show_number(value) if isinstance(value, float) else _count(value) for value in row.cells().values()]


def _count(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_toml(value: object) -> str:
    """Format a setting as TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {show_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(show_toml(item) for item in value) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
