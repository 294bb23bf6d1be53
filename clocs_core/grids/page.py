"""Write the report of a grid: tables, figures, controls, split certificates and environments, as HTML and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import attrs
from jinja2 import Environment, StrictUndefined

from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.contracts.grids import Condition, nothing_published
from clocs_core.files import sweep, write_atomically
from clocs_core.grids.definition import Grid
from clocs_core.grids.distances import DistanceLine, distance_sheet, summarise_distances
from clocs_core.grids.drawing import Drawing
from clocs_core.grids.evidence import control_sheet, environments, mixed_notes, split_sheet
from clocs_core.grids.figures import draw_distances, draw_scores
from clocs_core.grids.histograms import draw_histograms
from clocs_core.grids.invocations import Call, read_invocations
from clocs_core.grids.learning import draw_learning, summarise_learning
from clocs_core.grids.measure import Inputs
from clocs_core.grids.presets import Preset
from clocs_core.grids.provenance import Making, say_making
from clocs_core.grids.results import CellResult, Results, RunResult
from clocs_core.grids.rows import Sheet, difference_sheet, markdown, score_sheet
from clocs_core.grids.status import HEADINGS, CellState, count_states, states_of
from clocs_core.grids.summary import Line, Summary, summarise
from clocs_core.report.blocks import data_uri

INTRO = "95 % intervals of the mean, over seeds and patients; over patients alone where there is one repetition."


@attrs.frozen
class Section:
    """One table or figure of the paper: numbers, differences, figures, and sentences about them.

    first: what to know before the numbers.
    """

    preset: Preset
    sheet: Sheet
    differences: Sheet | None
    drawings: tuple[Drawing, ...]
    notes: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


@attrs.frozen
class Page:
    """All that a report shows. failures: the name and the error of every job that failed."""

    sections: tuple[Section, ...]
    pretrainings: Sheet
    controls: Sheet
    splits: Sheet
    environments: tuple[tuple[str, dict[str, str]], ...]
    commits: tuple[str, ...]
    failures: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    measure: str
    making: Making
    cells: tuple[CellState, ...] = ()

    def markdown_tables(self) -> str:
        """Write the tables alone, as a console shows them."""
        return "\n".join(f"## {heading(one.preset)}\n\n{markdown(one.sheet)}" for one in self.sections)


def build_page(grid: Grid, inputs: Inputs, call: Call) -> Page:
    """Gather everything about the tables of a grid, as far as they are done."""
    presets, repeats, results, measure = grid.presets, grid.repeats, inputs.results, grid.measure
    sections = tuple(_section(one, inputs) for one in presets)
    used = _used(presets, inputs)
    done = [one.note for one in used if one.report]
    reports = [one.report for one in used if one.report]
    commits = tuple(dict.fromkeys(note.commit for note in done if note.commit))
    scored = [one for one, needs_scores in _conditions(presets) if needs_scores]
    return Page(
        sections=sections,
        pretrainings=distance_sheet(summarise_distances([one for one, _ in _conditions(presets)], repeats, results)),
        controls=control_sheet(scored, repeats, results, measure),
        splits=split_sheet(reports),
        environments=environments(reports),
        commits=commits,
        failures=tuple((one.note.name, one.note.error) for one in used if one.report is None),
        notes=mixed_notes(reports, commits),
        measure=f"{measure.metric}, {measure.level} level",
        making=say_making(call, call.now(), done, read_invocations(results.out)),
        cells=states_of(grid, results),
    )


def build_progress(grid: Grid, out: Path, call: Call) -> Page:
    """Make a page of cells alone, while a grid runs: tables and figures take longer."""
    states, none = states_of(grid, Results(out)), Sheet("", (), (), ())
    since = f"The grid has been running since {call.began:%Y-%m-%d %H:%M} UTC."
    text = f"{since} {count_states(states)}. Tables come at the end."
    return Page(
        sections=(),
        pretrainings=none,
        controls=none,
        splits=none,
        environments=(),
        commits=(),
        failures=(),
        notes=(text,),
        measure=f"{grid.measure.metric}, {grid.measure.level} level",
        making=say_making(call, call.now(), (), read_invocations(out)),
        cells=states,
    )


def write_page(page: Page, out: Path) -> None:
    """Write grid.html, grid.md and figures/NAME.png and .svg, each whole or not at all."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for folder in (out, out / "figures"):
        sweep(folder)
    for drawing in (drawing for section in page.sections for drawing in section.drawings):
        write_atomically(out / "figures" / f"{drawing.name}.png", drawing.png)
        write_atomically(out / "figures" / f"{drawing.name}.svg", drawing.svg)
    write_atomically(out / "grid.md", to_markdown(page))
    write_atomically(out / "grid.html", to_html(page, out))


def to_html(page: Page, out: Path) -> str:
    """Write one HTML file that opens anywhere and looks like a run's report: no network, no script, figures inside.

    out: its folder; cells link to the reports of their runs below it.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"heading": heading, "data_uri": data_uri, "link": _link}
    template = files("clocs_core.grids").joinpath("page.html.jinja").read_text("utf-8")
    about = {"style": _style(), "intro": INTRO, "headings": HEADINGS, "count": count_states(page.cells)}
    return environment.from_string(template).render(page=page, out=out, **about)


def to_markdown(page: Page) -> str:
    """Write the same as Markdown, for a repository or a mail; figures lie beside it."""
    parts = [f"# Grid of benchmarks\n\n{_intro(page)}\n"]
    for section in page.sections:
        parts += [f"## {heading(section.preset)}\n", *section_markdown(section, "svg")]
    sheets = {"Pre-trainings": page.pretrainings, "Controls": page.controls, "Splits": page.splits}
    parts += [f"## {title}\n\n{markdown(sheet)}" for title, sheet in sheets.items()]
    parts += ["## Failures\n", *(f"- {name}: {error}" for name, error in page.failures), ""] if page.failures else []
    parts.append(_making(page.making))
    parts.append(f"## Environment\n\nSource: {', '.join(page.commits) or 'unknown'}\n")
    parts += [f"- {names}: {', '.join(f'{k} {v}' for k, v in found.items())}" for names, found in page.environments]
    return "\n".join(parts) + "\n"


def section_markdown(section: Section, ending: str) -> list[str]:
    """Write a table with its figures, which lie in figures/ with this ending, sentences and differences."""
    parts = [*(f"{note}\n" for note in section.first), markdown(section.sheet)]
    parts += [f"![{one.title}](figures/{one.name}.{ending})\n\n{one.caption}\n" for one in section.drawings]
    parts += [f"{note}\n" for note in section.notes]
    if section.differences:
        parts.append(f"### Differences on the same patients\n\n{markdown(section.differences)}")
    return parts


def _making(making: Making) -> str:
    commands = [f"Command {number}:\n\n```sh\n{text}\n```\n" for number, text in enumerate(making.commands, 1)]
    sheet = markdown(making.invocations) if making.invocations.rows else ""
    return "\n".join(["## How this was made\n", *(f"{one}\n" for one in making.sentences), *commands, sheet])


def _section(preset: Preset, inputs: Inputs) -> Section:
    repeats, results = inputs.repeats, inputs.results
    if not preset.needs_scores:
        return distance_section(preset, summarise_distances(preset.conditions, repeats, results))
    summary = summarise(preset.conditions, inputs, inputs.published.get(preset.offer, nothing_published))
    learning: tuple[Drawing, ...] = ()
    if preset.figure == "less":
        learning = draw_learning(preset, summarise_learning(preset.conditions, repeats, results))
    return score_section(preset, summary, inputs.measure.metric, learning)


def distance_section(preset: Preset, lines: tuple[DistanceLine, ...]) -> Section:
    """Make the section of a figure of distances; histograms are drawn where they were kept."""
    kept = any(found.edges for line in lines for found in line.found)
    drawings = (*(draw_histograms(preset, lines) if kept else ()), *draw_distances(preset, lines))
    return Section(preset, distance_sheet(lines), None, drawings)


def score_section(preset: Preset, summary: Summary, metric: str, more: tuple[Drawing, ...] = ()) -> Section:
    """Make the section of a table of scores. more: figures to stand before those of the scores."""
    differences = difference_sheet(summary) if summary.differences else None
    drawings = (*more, *draw_scores(preset, summary, metric))
    claims = _claims(summary, preset.claim)
    return Section(preset, score_sheet(summary), differences, drawings, claims, _no_transfer(summary))


def _no_transfer(summary: Summary) -> tuple[str, ...]:
    """Say which lines evaluate on the data set of the pre-training where the paper went on to another."""
    found = dict.fromkeys(
        (one.pretraining, *sorted((one.printed_pretraining, one.printed_downstream)))
        for one in (line.condition for line in summary.lines)
        if _evaluates_on_its_own(one)
    )
    return tuple(
        f"{ours} stands in for both {one} and {other}. Rows from {one} to {other}, or back, fine-tune on the "
        "recordings of pre-training. They are no transfer: do not compare them with the paper's."
        for ours, one, other in found
    )


def _claims(summary: Summary, claim: tuple[str, ...]) -> tuple[str, ...]:
    """Count how often one method is above another, by its mean here and in the paper, and by our interval.

    A comparison of ours counts once, however many of the paper's it stands for. One that is no transfer does not count.
    """
    if not claim:
        return ()
    pairs: dict[Condition, dict[str, Line]] = {}
    for line in (one for one in summary.lines if not _evaluates_on_its_own(one.condition)):
        pairs.setdefault(line.condition.context, {})[line.condition.row] = line
    both = {place: (rows[claim[0]], rows[claim[1]]) for place, rows in pairs.items() if set(claim) <= rows.keys()}
    here = {_ours(place): a.spread.mean > b.spread.mean for place, (a, b) in both.items() if a.spread and b.spread}
    there = [a.printed.mean > b.printed.mean for a, b in both.values() if a.printed and b.printed]
    if not here:
        return ()
    paper = f", and in {sum(there)} of {len(there)} in the paper" if there else ""
    # Which of the two stands first depends on the order of the rows.
    sides = [(one, 1 if one.a == claim[0] else -1) for one in summary.differences if {one.a, one.b} == set(claim)]
    told = {
        _ours(one.context)
        for one, sign in sides
        if min(sign * one.interval.low, sign * one.interval.high) > 0 and one.repetitions > 1
    }
    return (
        f"The mean of {claim[0]} is higher than that of {claim[1]} in {sum(here.values())} of {len(here)} conditions "
        f"here{paper}. The interval of the difference over seeds and patients is above 0 in "
        f"{len(told & here.keys())} of {len(here)}.",
    )


def _evaluates_on_its_own(one: Condition) -> bool:
    """Whether an encoder is evaluated on the data set of its pre-training where the paper went on to another."""
    return one.pretraining == one.downstream and one.printed_pretraining != one.printed_downstream


def _ours(one: Condition) -> Condition:
    """Return a place without the places of the paper that it stands for."""
    return attrs.evolve(one, printed_pretraining="", printed_downstream="")


def _used(presets: Iterable[Preset], inputs: Inputs) -> list[RunResult | CellResult]:
    """List every job that ended of which these tables are made."""
    results, found = inputs.results, dict[Path, RunResult | CellResult | None]()
    for one, needs_scores in _conditions(presets):
        ended: list[RunResult | CellResult | None] = [results.pretraining(run) for run in inputs.repeats.runs(one)]
        ended += [results.cell(cell) for cell in inputs.repeats.cells(one)] if needs_scores else []
        found |= {one.folder: one for one in ended if one is not None}
    return [one for one in found.values() if one is not None]


def _conditions(presets: Iterable[Preset]) -> list[tuple[Condition, bool]]:
    return [(one, preset.needs_scores) for preset in presets for one in preset.conditions]


def heading(preset: Preset) -> str:
    """Name a table, with its place in the paper."""
    where = f" ({preset.printed_in} of the paper)" if preset.printed_in else ""
    return f"{preset.title}{where}"


def _intro(page: Page) -> str:
    notes = "".join(f"\n\n{note}" for note in page.notes)
    return f"{page.measure}. Means over seeds and splits; {INTRO} `random` is the same encoder, untrained.{notes}"


def _style() -> str:
    """Take the style sheet from the page of a run's report, so that the two look alike."""
    page = files("clocs_core.report").joinpath("page.html.jinja").read_text("utf-8")
    found = re.search(r"<style>\n(.*?)</style>", page, re.DOTALL)
    assert found, "the page of a run has a style sheet"
    return found[1]


def _link(state: CellState, out: Path) -> str:
    """Return the address of the report of a cell, from the page; "" where there is none."""
    page = RunFolder(state.folder).page
    return quote(page.relative_to(out).as_posix()) if page.exists() else ""
