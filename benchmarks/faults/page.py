"""Write the result of a campaign as a table for docs/reliability.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

_WORDS = {
    "kill": "process killed",
    "full disk": "full disk",
    "failing read": "failing read",
    "changing file": "file that changes while it is read",
    "clock": "clock that jumps",
    "mutated input": "mutated recording or table",
    "damaged file": "damaged file of clocs",
    "two processes": "two processes in one place",
}
_GOOD = ("equal", "refused")


def table_of(document: Mapping[str, Any]) -> str:
    """Return a row for each group and subject, and a sum, from what `campaign.py --json` wrote."""
    head = "| disturbance | of | trials | went well | refused in a sentence | anything else | longest | memory |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    lines += [
        _row(_WORDS[row["group"]], row["subject"], row["verdicts"], row["longest_s"], row["largest_MiB"])
        for row in document["table"]
    ]
    rows = document["table"]
    every = sum((Counter(row["verdicts"]) for row in rows), Counter[str]())
    lines.append(_row("all", "", every, max(row["longest_s"] for row in rows), max(row["largest_MiB"] for row in rows)))
    return "\n".join(lines)


def _row(group: str, subject: str, verdicts: Mapping[str, int], seconds: float, memory: int) -> str:
    good = [verdicts.get(verdict, 0) for verdict in _GOOD]
    total = sum(verdicts.values())
    counts = " | ".join(f"{count:,}" for count in (total, *good, total - sum(good)))
    return f"| {group} | {subject} | {counts} | {seconds:.1f} s | {memory:,} MiB |"
