"""Show many runs and evaluations on one HTML page: their scores side by side, and their paired differences."""

from __future__ import annotations

from clocs_core.report.blocks import Section, Table
from clocs_core.report.compared import Compared, compares_rows, score_table, setting_rows
from clocs_core.report.plain_page import comparison_table, render_sections
from clocs_core.report.tables import comparison_sentence

_SIDES = ("", "weights", "protocol", "data set", "task", "part", "seeds", "folders")


def render_compared(found: Compared) -> str:
    """Return the page as text."""
    sides = Table(title="What is compared", headings=_SIDES, rows=compares_rows(found.compared))
    sections = [Section(name="compared", title="What is compared", tables=[sides])]
    if found.scores:
        headings, rows = score_table(found)
        said = "Values with 95 % intervals by bootstrap over patients; of several seeds, their mean ± sd."
        table = Table(title="Scores", headings=headings, rows=rows)
        sections.append(Section(name="scores", title="Scores", sentences=[said], tables=[table]))
    sections.append(_differences(found))
    letters = [one.letter for one in found.compared]
    settings = Table(title="Settings that differ", headings=("setting", *letters), rows=setting_rows(found.settings))
    same = () if found.settings else ("Their settings are all the same.",)
    tables = [settings] if found.settings else []
    sections.append(Section(name="settings", title="Settings that differ", sentences=same, tables=tables))
    names = ", ".join(one.name for one in found.compared)
    facts = {"Compared": str(len(letters)), "Data set": ", ".join(dict.fromkeys(one.dataset for one in found.compared))}
    return render_sections(
        f"Comparison of {names}", "Differences are of the first minus each other one.", facts, sections
    )


def _differences(found: Compared) -> Section:
    refused = [
        f"{one.a} and {one.b} are not paired{f' at the {one.level} level' if one.level else ''}: {one.reason}."
        for one in found.refused
    ]
    return Section(
        name="differences",
        title="Differences on the same patients",
        sentences=[comparison_sentence(one) for one in found.differences],
        notes=(*refused, *found.notes),
        tables=[comparison_table("Paired differences", found.differences)] if found.differences else [],
    )
