"""Write the lines of a table as text, for a console, for Markdown and for HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan

import attrs

from clocs_core.contracts.grids import Condition
from clocs_core.grids.axes import OWN
from clocs_core.grids.summary import Judged, Line, Spread, Summary
from clocs_core.report.tables import show_number

INTERVAL = "95 % over seeds and patients"  # over patients alone where there is one repetition
SEEN = ("steps, to best / all", "instances seen, to best / all")

# The columns that say where a line stands. Those that are the same in all lines go into the caption.
_PLACES: dict[str, Callable[[Condition], str]] = {
    "pre-training": lambda one: _standing(one.pretraining, one.printed_pretraining) or "none",
    "downstream": lambda one: _standing(one.downstream, one.printed_downstream),
    "protocol": lambda one: one.protocol,
    "leads": lambda one: one.leads or "own",
    "E": lambda one: str(one.embedding_dim),
    "F": lambda one: f"{one.label_fraction:g}",
    "patients": lambda one: one.part,
    "exposure": lambda one: one.exposure or OWN,
}


@attrs.frozen
class Sheet:
    """A table as text: what all its lines share, the headings, the rows, and for each row whether a group begins."""

    shared: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    begins: tuple[bool, ...]


def score_sheet(summary: Summary) -> Sheet:
    """Put ours beside the paper's, a line per condition, the untrained encoder first."""
    places, shared = _places([line.condition for line in summary.lines])
    splits = any(line.spread and line.spread.sd_splits is not None for line in summary.lines)
    printed = any(line.printed for line in summary.lines)
    seen = any(line.seen for line in summary.lines)
    others = tuple(dict.fromkeys(name for line in summary.lines for name in line.beside))
    headings = (
        *(*places, "method", "ours, mean ± sd over seeds", *(("sd over splits",) if splits else ())),
        *(INTERVAL, "above random", *(("the paper", "ours - paper") if printed else ())),
        *(heading for name in others for heading in (name, *((f"{name} - paper",) if printed else ()))),
        *(*(SEEN if seen else ()), "runs"),
    )
    rows = tuple(
        (
            *(_PLACES[place](line.condition) for place in places),
            line.condition.row,
            say_spread(line.spread),
            *((_sd_splits(line.spread),) if splits else ()),
            _range(line.interval),
            _gain(line),
            *(_printed(line) if printed else ()),
            *(cell for name in others for cell in _beside(line, name)[: 2 if printed else 1]),
            *(_seen(line) if seen else ()),
            _runs(line),
        )
        for line in summary.lines
    )
    shared = _with_direction(shared, summary)
    return Sheet(shared, headings, rows, _begins([line.condition.context for line in summary.lines]))


def difference_sheet(summary: Summary) -> Sheet:
    """List the paired differences between methods, a line per pair."""
    places, shared = _places([one.context for one in summary.differences])
    headings = (*places, "a", "b", "a - b", INTERVAL, "reading", "repetitions")
    rows = tuple(
        (
            *(_PLACES[place](one.context) for place in places),
            *(one.a, one.b, f"{one.interval.value:+.3f}", _range(one.interval)),
            *(say_reading(one.interval.low, one.interval.high, one.repetitions), str(one.repetitions)),
        )
        for one in summary.differences
    )
    shared = _with_direction(shared, summary)
    return Sheet(shared, headings, rows, _begins([one.context for one in summary.differences]))


def _with_direction(shared: str, summary: Summary) -> str:
    """Add that lower is better, where it is: a number above that of `random` is then a worse one."""
    return shared if summary.better == "higher" else ", ".join(filter(None, (shared, "lower is better")))


def say_spread(found: Spread | None) -> str:
    """Write the mean with the sd over seeds, if there are several; "" where there is no score."""
    if found is None:
        return ""
    return show_number(found.mean) + (f" ± {show_number(found.sd_seeds)}" if found.sd_seeds is not None else "")


def say_range(low: float, high: float) -> str:
    """Write the ends of an interval."""
    return f"{show_number(low)} – {show_number(high)}"


def say_gain(value: float, low: float, high: float) -> str:
    """Write a difference with its interval."""
    return f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"


def say_reading(low: float, high: float, repetitions: int) -> str:
    """Say what the interval of a - b says. One repetition says nothing about other seeds, so it has no verdict."""
    if isnan(low) or isnan(high):
        return "not defined"
    if repetitions < 2:
        return "one seed"
    if low > 0:
        return "a is above"
    return "a is below" if high < 0 else "not told apart"


def markdown(sheet: Sheet) -> str:
    """Write the table in Markdown, with what its lines share above it."""
    lines = [sheet.headings, ("---",) * len(sheet.headings), *sheet.rows]
    table = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)
    return f"{sheet.shared}\n\n{table}\n" if sheet.shared else f"{table}\n"


def _places(conditions: Sequence[Condition]) -> tuple[tuple[str, ...], str]:
    """Find the places that vary, and a phrase for those that do not."""
    found = {name: list(dict.fromkeys(say(one) for one in conditions)) for name, say in _PLACES.items()}
    said = ((name, values[0]) for name, values in found.items() if len(values) == 1)
    shared = ", ".join(f"{name} {value}" for name, value in said if (name, value) != ("exposure", OWN))
    return tuple(name for name, values in found.items() if len(values) > 1), shared


def _standing(name: str, printed: str) -> str:
    return name if name == printed else f"{name} (for {printed})"


def _begins(contexts: Sequence[Condition]) -> tuple[bool, ...]:
    return tuple(place > 0 and contexts[place - 1] != context for place, context in enumerate(contexts))


def _sd_splits(found: Spread | None) -> str:
    return "" if found is None or found.sd_splits is None else show_number(found.sd_splits)


def _range(interval: Judged | None) -> str:
    return "" if interval is None else say_range(interval.low, interval.high)


def _gain(line: Line) -> str:
    if line.gain_value is None:
        return ""
    return say_gain(line.gain_value, line.gain.low, line.gain.high) if line.gain else f"{line.gain_value:+.3f}"


def _printed(line: Line) -> tuple[str, str]:
    return line.printed.printed if line.printed else "", "" if line.off is None else f"{line.off:+.3f}"


def _beside(line: Line, name: str) -> tuple[str, str]:
    """Write the mean by another measure, and how far it is from the paper's."""
    value = line.beside.get(name)
    if value is None:
        return "", ""
    return show_number(value), f"{value - line.printed.mean:+.3f}" if line.printed else ""


def _seen(line: Line) -> tuple[str, str]:
    if line.seen is None:
        return "", ""
    seen = line.seen
    return f"{seen.best_steps:,.0f} / {seen.steps:,.0f}", f"{seen.best_instances:,.0f} / {seen.instances:,.0f}"


def _runs(line: Line) -> str:
    """Count the repetitions, and say whether others failed."""
    count = str(line.done) if line.done == line.wanted else f"{line.done} of {line.wanted}"
    return f"{count}, failed" if line.errors else count
