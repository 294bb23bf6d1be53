"""Show how long the stages of a run took, on the page and on a console."""

from __future__ import annotations

from collections.abc import Mapping


def time_lines(seconds: Mapping[str, float]) -> str:
    """Return a line for each stage. seconds: by stage, or by stage and part, as "evaluate/embed"."""
    shown = stage_times(seconds)
    width = max((len(stage) for stage, _ in shown), default=0)
    return "\n".join(["time of each stage:", *(f"  {stage:{width}}  {text}" for stage, text in shown)])


def stage_times(seconds: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return each stage with its time, and behind it the times of its parts."""
    return [
        (stage, show_duration(spent) + _parts(stage, seconds)) for stage, spent in seconds.items() if "/" not in stage
    ]


def _parts(stage: str, seconds: Mapping[str, float]) -> str:
    begin = f"{stage}/"
    parts = {name.removeprefix(begin): spent for name, spent in seconds.items() if name.startswith(begin)}
    return f" ({', '.join(f'{part} {show_duration(spent)}' for part, spent in parts.items())})" if parts else ""


def show_duration(seconds: float) -> str:
    """Format seconds for a person: "8.2 s", "1 min 05 s", "2 h 03 min"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
