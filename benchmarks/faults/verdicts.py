"""Judge trials, and count them by what was done and how it ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Literal

import attrs

from faults.processes import Ended

Verdict = Literal["equal", "refused", "difference", "traceback", "hang", "memory", "not resumable", "unclear message"]
GOOD: tuple[Verdict, ...] = ("equal", "refused")


@attrs.frozen
class Trial:
    """One disturbance and its end. `repeat`: the arguments that make this trial again. detail: what went wrong."""

    group: str
    subject: str
    repeat: str
    verdict: Verdict
    seconds: float
    memory: int
    detail: str = ""

    @property
    def is_good(self) -> bool:
        """Tell whether the promise was kept: the same results, or a refusal in a sentence."""
        return self.verdict in GOOD

    def line(self) -> str:
        """Write the trial as a line of JSON."""
        return json.dumps(attrs.asdict(self))


def judge_end(ended: Ended, killed: bool = False) -> tuple[Verdict, str]:
    """Judge how a process ended by itself: well, refused, or in a way that no input may cause."""
    fault = ended.fault()
    if fault == "traceback" or (ended.code < 0 and not killed and fault == ""):
        return "traceback", ended.text[-600:]
    if fault == "hang":
        return "hang", f"{ended.seconds:.0f} s; {ended.text[-300:]}"
    if fault == "memory":
        return "memory", f"{ended.memory >> 20} MiB; {ended.text[-300:]}"
    if ended.code == 0 or killed:
        return "equal", ""
    if "Error" in ended.text or "Stopped" in ended.text or "Interrupted" in ended.text:
        return "refused", ended.text.strip().splitlines()[-1]
    return "unclear message", f"exit code {ended.code}: {ended.text[-300:]}"


def differing(found: dict[str, str], expected: dict[str, str]) -> str:
    """Name the results that differ. Empty where all are equal."""
    names = [name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name)]
    return "; ".join(f"{name}: {found.get(name, 'missing')[:150]}" for name in names)


def tabulate(trials: Iterable[Trial]) -> list[dict[str, object]]:
    """Count verdicts by group and subject, with the longest duration and the largest memory."""
    rows: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        rows.setdefault((trial.group, trial.subject), []).append(trial)
    return [
        {
            "group": group,
            "subject": subject,
            "trials": len(some),
            "verdicts": dict(sorted(Counter(one.verdict for one in some).items())),
            "longest_s": round(max(one.seconds for one in some), 2),
            "largest_MiB": max(one.memory for one in some) >> 20,
        }
        for (group, subject), some in sorted(rows.items())
    ]
