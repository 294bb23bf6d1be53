"""Write a page in Markdown for each table of a grid, and one that lists them, from the files of exports alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from clocs_core.contracts.grids import nothing_published
from clocs_core.errors import SettingsError
from clocs_core.files import write_atomically
from clocs_core.grids.definition import Grid
from clocs_core.grids.distances import summarise_distances
from clocs_core.grids.exported_files import Kept
from clocs_core.grids.exported_tables import KeptLines
from clocs_core.grids.measure import Lookup
from clocs_core.grids.page import INTRO, Section, distance_section, heading, score_section, section_markdown
from clocs_core.grids.presets import Preset, wanted_cells, wanted_runs
from clocs_core.grids.rows import Sheet, markdown
from clocs_core.grids.summary import tabulate

INDEX = "index.md"
UNTOLD = (
    "Rows without an interval: {count}. Their seeds were exported apart, and an interval needs all seeds of a row in "
    "one export."
)


@attrs.frozen
class Count:
    """How many cells of a table are made, of those that were asked for; of a figure of distances, pre-trainings."""

    made: int
    asked: int
    unit: str

    @property
    def sentence(self) -> str:
        """The count in words."""
        return f"{self.made:,} of {self.asked:,} {self.unit} are made."


def count_made(preset: Preset, grid: Grid, kept: Kept) -> Count:
    """Count what is made of a table."""
    if preset.needs_scores:
        cells = wanted_cells([preset], grid.repeats)
        return Count(sum(map(kept.has, cells)), len(cells), "cells")
    runs = wanted_runs([preset], grid.repeats)
    return Count(sum(kept.trained(run) is not None for run in runs), len(runs), "pre-trainings")


def write_kept_pages(
    grid: Grid,
    kept: Kept,
    published: Mapping[str, Lookup],
    folder: Path,
    said: Callable[[str], None] = lambda text: None,
) -> dict[str, Count]:
    """Write NAME.md for each table of which something is made, index.md, and figures. Returns the counts by name.

    said: is told of each table when it is written, in a line; a page with many panels takes seconds.
    Raises SettingsError where nothing is made of what was asked for: the exports are of another grid.
    """
    counts = {preset.name: count_made(preset, grid, kept) for preset in grid.presets}
    if not any(count.made for count in counts.values()):
        scores = kept.count
        raise SettingsError(
            f"The exports have {scores:,} scores of {kept.measure.metric}, and none is of a cell that was asked for. "
            "Name the file of the grid that they are of: --asked FILE."
        )
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for preset in grid.presets:
        if counts[preset.name].made:
            section = make_section(preset, grid, kept, published)
            for drawing in section.drawings:
                write_atomically(folder / "figures" / f"{drawing.name}.png", drawing.png)
            write_atomically(folder / f"{preset.name}.md", _page(section, counts[preset.name], kept).encode())
        said(f"{preset.name}: {counts[preset.name].sentence}")
    write_atomically(folder / INDEX, _index(grid.presets, counts, kept).encode())
    return counts


def make_section(preset: Preset, grid: Grid, kept: Kept, published: Mapping[str, Lookup]) -> Section:
    """Make the table of a page. Every interval and verdict follows from the files of the exports."""
    if not preset.needs_scores:
        return distance_section(preset, summarise_distances(preset.conditions, grid.repeats, kept))
    found = KeptLines(kept, grid.repeats, published.get(preset.offer, nothing_published))
    table = tabulate(preset.conditions, found)
    section = score_section(preset, table, kept.measure.metric)
    untold = sum(line.done > 0 and line.interval is None for line in table.lines)
    return attrs.evolve(section, notes=(*section.notes, UNTOLD.format(count=untold))) if untold else section


def _page(section: Section, count: Count, kept: Kept) -> str:
    metric = f"{kept.measure.metric}, {kept.measure.level} level. Means over seeds and splits; {INTRO} "
    about = metric + "`random` is the same encoder, untrained." if section.preset.needs_scores else ""
    parts = [f"# {heading(section.preset)}\n", f"[All tables]({INDEX})\n", f"{count.sentence} {about}".rstrip() + "\n"]
    return "\n".join([*parts, *section_markdown(section, "png")])


def _index(presets: Sequence[Preset], counts: Mapping[str, Count], kept: Kept) -> str:
    rows = tuple(
        (
            f"[{preset.name}]({preset.name}.md)" if counts[preset.name].made else preset.name,
            *(preset.printed_in, preset.title),
            *(f"{counts[preset.name].made:,}", f"{counts[preset.name].asked:,} {counts[preset.name].unit}"),
        )
        for preset in presets
    )
    tables = Sheet("", ("table", "in the paper", "", "made", "asked for"), rows, (False,) * len(rows))
    calls = tuple(
        (one.began[:19].replace("T", " "), f"`{one.command}`", f"{one.seconds:,.0f} s", f"{one.done:,}", one.machine)
        for one in kept.calls
    )
    made = Sheet("", ("began (UTC)", "command", "wall time", "jobs done", "machine"), calls, (False,) * len(calls))
    source = f"Source: {', '.join(kept.commits) or 'unknown'}\n"
    of_paper = " of the paper" if any(preset.printed_in for preset in presets) else ""
    parts = [
        f"# Tables and figures{of_paper}\n",
        f"{_totals(counts)}\n",
        *_stand_ins(presets),
        markdown(tables),
        "## How they were made\n",
        markdown(made),
        source,
    ]
    return "\n".join(parts)


def _totals(counts: Mapping[str, Count]) -> str:
    """Count all tables together. A cell of several tables counts in each."""
    units = dict.fromkeys(one.unit for one in counts.values())
    of_unit = {unit: [one for one in counts.values() if one.unit == unit] for unit in units}
    sums = {unit: (sum(one.made for one in found), sum(one.asked for one in found)) for unit, found in of_unit.items()}
    return " ".join(Count(*total, unit).sentence for unit, total in sums.items())


def _stand_ins(presets: Sequence[Preset]) -> list[str]:
    """Say which data sets stand in for those of the paper."""
    conditions = [one for preset in presets for one in preset.conditions]
    pairs = [(one.pretraining, one.printed_pretraining) for one in conditions]
    pairs += [(one.downstream, one.printed_downstream) for one in conditions]
    meant: dict[str, dict[str, None]] = {}
    for ours, papers in pairs:
        if papers not in ("", ours):
            meant.setdefault(ours, {})[papers] = None
    return [
        f"`{ours}` stands in for {' and '.join(f'`{name}`' for name in papers)}: the paper's numbers beside ours are "
        "of other recordings.\n"
        for ours, papers in meant.items()
    ]
