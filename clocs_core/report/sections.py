"""Make the sections that plugins add to a report. One that fails is left out with a warning."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from clocs_core.contracts.events import Picture
from clocs_core.contracts.result_offers import ReportSection
from clocs_core.contracts.sections import Findings, ReportTable
from clocs_core.plan.data import Chosen
from clocs_core.report.tables import show_number

PNG = b"\x89PNG\r\n\x1a\n"
"""The first bytes of a PNG."""


@attrs.frozen(eq=False)
class MadeSection:
    """A section as the page shows it."""

    name: str
    title: str
    tables: tuple[ReportTable, ...]
    pictures: tuple[Picture, ...]


def make_sections(
    chosen: Iterable[Chosen[ReportSection]], findings: Findings, warn: Callable[[str], None]
) -> tuple[MadeSection, ...]:
    """Make every section. One that fails, or returns anything else, costs a warning."""
    made = []
    for one in chosen:
        try:
            made.append(make_section(one.offer, one.options, findings))
        except (Exception, SystemExit) as problem:  # code of plugins may raise anything; the report goes on
            warn(
                f"Section {one.offer.name!r} of {one.owner or 'a plugin'} is left out of the report: "
                f"{type(problem).__name__}: {problem}"
            )
    return tuple(section for section in made if section.tables or section.pictures)


def make_section(offer: ReportSection, options: object, findings: Findings) -> MadeSection:
    """Make one section. Raises TypeError or ValueError where it returns what is neither a table nor a picture."""
    found = list(offer.make(options, findings))
    for item in found:
        if not isinstance(item, (ReportTable, Picture)):
            raise TypeError(f"a section must return a list of ReportTable and Picture, got {item!r:.80}")
        if isinstance(item, Picture) and not (isinstance(item.png, bytes) and item.png.startswith(PNG)):
            raise ValueError(f"picture {item.name!r} is no PNG")
    tables = [_as_text(item) for item in found if isinstance(item, ReportTable)]
    pictures = tuple(item for item in found if isinstance(item, Picture))
    return MadeSection(offer.name, offer.title or offer.name, tuple(tables), pictures)


def _as_text(table: ReportTable) -> ReportTable:
    rows = [[show_number(cell) if isinstance(cell, float) else str(cell) for cell in row] for row in table.rows]
    return attrs.evolve(table, rows=rows)
