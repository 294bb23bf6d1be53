"""Show how long the stages of a run took, on the page and on a console."""

from __future__ import annotations

from collections.abc import Mapping

from clocs_core.report.blocks import Section, Table


def whole_time(seconds: Mapping[str, float]) -> str:
    """Return the time of all stages together."""
    return show_duration(sum(spent for stage, spent in seconds.items() if "/" not in stage))


def time_section(seconds: Mapping[str, float], called: Mapping[str, str] | None = None) -> Section:
    """Return a table with a row for each stage. called: words for stages whose names do not say enough."""
    names = called or {}
    rows = [(names.get(stage, stage), *of_it) for stage, *of_it in stage_times(seconds)]
    table = Table(title="Time", headings=("stage", "time", "of which"), rows=rows)
    return Section(name="time", title="Time", tables=[table])


def time_lines(seconds: Mapping[str, float]) -> str:
    """Return a line for each stage. seconds: by stage, or by stage and part, as "evaluate/embed"."""
    shown = stage_times(seconds)
    width = max((len(stage) for stage, _, _ in shown), default=0)
    lines = (f"  {stage:{width}}  {time}{f' ({parts})' if parts else ''}" for stage, time, parts in shown)
    return "\n".join(["time of each stage:", *lines])


def stage_times(seconds: Mapping[str, float]) -> list[tuple[str, str, str]]:
    """Return each stage, its time and the times of its parts; "" where it has none."""
    return [
        (stage, show_duration(spent), _parts(stage, seconds)) for stage, spent in seconds.items() if "/" not in stage
    ]


def _parts(stage: str, seconds: Mapping[str, float]) -> str:
    begin = f"{stage}/"
    parts = {name.removeprefix(begin): spent for name, spent in seconds.items() if name.startswith(begin)}
    return ", ".join(f"{part} {show_duration(spent)}" for part, spent in parts.items())


def show_duration(seconds: float) -> str:
    """Format seconds for a person: "8.2 s", "1 min 05 s", "2 h 03 min"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
