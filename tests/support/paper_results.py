"""The committed scores of the paper's tables, with E = 128, as the documentation quotes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import attrs

from clocs_core.contracts.grids import Condition, nothing_published
from clocs_core.grids.exported_files import read_kept
from clocs_core.grids.exported_tables import KeptLines
from clocs_core.grids.grid_file import read_grid_file, settle_grid
from clocs_core.grids.summary import Judged, Line
from clocs_core.plugins.session import installed_session

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
EXPORTS = BENCHMARKS / "results" / "paper"
TABLES = (
    *("linear-main", "equal-exposure", "transfer-main"),
    *("linear-4-leads", "linear-12-leads", "transfer-4-leads", "transfer-12-leads"),
)


@attrs.frozen
class Place:
    """Where methods are compared. PTB-XL stands for the linear evaluation, other data sets for fine-tuning."""

    leads: str
    downstream: str
    label_fraction: str
    exposure: str = ""


@attrs.frozen(eq=False)
class PaperResults:
    """Lines by place and row, `random` among them, and differences by place and the rows a and b."""

    lines: dict[tuple[Place, str], Line]
    differences: dict[tuple[Place, str, str], Judged]

    def seeds(self, row: str, place: Place) -> tuple[float, ...]:
        """The scores of the five seeds."""
        spread = self.lines[place, row].spread
        assert spread is not None, f"{row} has no scores at {place}"
        (values,) = spread.values
        return values

    def find(self, a: str, b: str, place: Place) -> tuple[float, float, float]:
        """How far a is above b, and the interval over seeds and patients."""
        found = self.lines[place, a].gain if b == "random" else self.differences.get((place, a, b))
        if found is not None:
            return found.value, found.low, found.high
        found = self.differences[place, b, a]
        return -found.value, -found.high, -found.low


@cache
def paper_results() -> PaperResults:
    """Read the exports of the paper's tables."""
    grid = settle_grid(read_grid_file(BENCHMARKS / "paper.toml"), installed_session().catalogue)
    kept = KeptLines(read_kept(sorted(EXPORTS.iterdir()), grid.measure), grid.repeats, nothing_published)
    places: dict[Place, dict[str, Condition]] = {}
    for preset in (one for one in grid.presets if one.name in TABLES):
        for one in preset.conditions:
            if one.embedding_dim == 128 and (one.protocol == "linear") == (one.downstream == "ptbxl"):
                place = Place(one.leads, one.downstream, f"{one.label_fraction:g}", one.exposure)
                places.setdefault(place, {}).setdefault(one.row, one)
    lines: dict[tuple[Place, str], Line] = {}
    differences: dict[tuple[Place, str, str], Judged] = {}
    for place, rows in places.items():
        context, *_ = (one.context for one in rows.values())
        (lines[place, "random"],) = kept.random_lines(context, list(rows.values()))
        lines |= {(place, name): kept.line(one) for name, one in rows.items()}
        found = kept.differences(context, list(rows.values()))
        differences |= {(place, one.a, one.b): one.interval for one in found}
    return PaperResults(lines, differences)
