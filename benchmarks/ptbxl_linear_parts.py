"""The linear scores of the page of results on PTB-XL: the main table, what is above what, and what is missing."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from ptbxl_cells import as_table, published_cells, score_cell
from ptbxl_rows import TASKS
from ptbxl_scores import is_main

OVERVIEW = "ptbxl.png"
"""Picture of the main table."""


def linear_part(rows: Iterable[dict[str, Any]], others: dict[str, Any]) -> str:
    """Return the main table: a frozen encoder and a linear model whose C was chosen on fold 9."""
    head = ["method, encoder", "frames", "parameters", "epochs", "seeds", "minutes", *TASKS]
    lines = []
    for row in rows:
        scores = {one["task"]: one for one in row["scores"] if is_main(one)}
        if scores:
            minutes = statistics.median(row["pretrain_seconds"]) / 60
            counts = [len(one["seeds"]) for one in scores.values()]
            seeds = " to ".join(str(one) for one in sorted({min(counts), max(counts)}))
            cells = [score_cell(scores[task]) if task in scores else "" for task in TASKS]
            size, epochs = f"{row['parameters'] / 1e6:.1f} M", str(row["options"]["epochs"])
            lines.append([row["name"], row["frames"], size, epochs, seeds, f"{minutes:.1f}", *cells])
    theirs = [published_cells(one) for one in others["rows"] if one["protocol"] == "linear"]
    return "\n".join(
        [
            "## Linear",
            "",
            "A frozen encoder, and a linear model whose penalty was chosen on fold 9. AUROC with its interval; then "
            "how far it is above the untrained control, with the interval of that difference.",
            "",
            f"![AUROC of every row on three tasks, of its untrained encoder, and published](pictures/{OVERVIEW})",
            "",
            *as_table(head, lines),
            "",
            "Published, with other and mostly more recordings for pre-training:",
            "",
            *as_table(["model", "pre-trained on", "parameters", "source", *TASKS], theirs),
            "",
            "The best of both, without labels or reports in pre-training:",
            "",
            *as_table(["", *TASKS], _best(rows, others)),
            "",
        ]
    )


def _best(rows: Iterable[dict[str, Any]], others: dict[str, Any]) -> list[list[str]]:
    """Return the highest linear AUROC of our rows and of published ones on each task, with their names."""
    ours: dict[str, list[tuple[float, str]]] = {task: [] for task in TASKS}
    theirs: dict[str, list[tuple[float, str]]] = {task: [] for task in TASKS}
    for row in (row for row in rows if row["method"] != "supervised"):
        for one in (one for one in row["scores"] if is_main(one)):
            ours[one["task"]].append((one["auroc"][0], row["name"]))
    for one in others["rows"]:
        if one["protocol"] == "linear" and "with" not in one.get("data", ""):
            for task, value in one["scores"].items():
                theirs[task].append((value, one["name"]))
    lines = []
    for words, found in (("ours", ours), ("published", theirs)):
        best = [max(found[task], default=(0.0, "")) for task in TASKS]
        lines.append([words, *(f"{value:.3f}, {name}" if name else "" for value, name in best)])
    return lines


def verdicts_part(rows: Iterable[dict[str, Any]]) -> str:
    """Say on which tasks each row is above or below its untrained encoder, by intervals that exclude 0."""
    lines = []
    for several in (True, False):
        for row in rows:
            scores = [one for one in row["scores"] if is_main(one)]
            if scores and (min(len(one["seeds"]) for one in scores) > 1) == several:
                above = [one["task"] for one in scores if one["gain"][1] > 0]
                below = [one["task"] for one in scores if one["gain"][2] < 0]
                seeds = "over seeds and patients" if several else "one seed"
                lines.append([row["name"], seeds, _named(above, scores), _named(below, scores)])
    return "\n".join(
        [
            "Above or below the untrained encoder, by an interval that excludes 0. Of one seed, the interval is over "
            "patients only.",
            "",
            *as_table(["method, encoder", "interval", "above", "below"], lines),
            "",
        ]
    )


def differences_part(tables: Iterable[dict[str, Any]]) -> str:
    """Say how far a row is above others, where a table says so."""
    parts = []
    for table in (table for table in tables if table.get("against")):
        lines = []
        for name, above in table["above"].items():
            cells = ["{:+.3f} [{:+.3f}, {:+.3f}]".format(*above[task]) if task in above else "" for task in TASKS]
            lines.append([name, *cells])
        parts += [
            f"How far `{table['against']}` is above other rows: the difference of AUROC with its interval, over seeds "
            "and patients, or over patients alone where a row has one seed.",
            "",
            *as_table(["method, encoder", *TASKS], lines),
            "",
        ]
    return "\n".join(["## Differences between rows", "", *parts]) if parts else ""


def missing_part(rows: Iterable[dict[str, Any]], asked: Sequence[str]) -> str:
    """Name the rows that were asked for and are not measured."""
    names = {row["name"] for row in rows}
    missing = [name for name in asked if name not in names]
    if not missing:
        return ""
    listed = "; ".join(missing)
    return f"Not measured on fold 10 yet, of the {len(asked)} rows of `benchmarks/ptbxl.toml`: {listed}.\n"


def unfinished_part(tables: Iterable[dict[str, Any]]) -> str:
    """Return the rows that lack a seed or an evaluation."""
    rows = [row["name"] for table in tables for row in table["rows"]]
    failed = [one for table in tables for one in table["failed"]]
    names = [name for name in rows if any(one.startswith(f"{name}, seed ") for one in failed)]
    if not names:
        return ""
    return f"Incomplete rows, which a time limit (`--until`) ended early: {'; '.join(names)}.\n"


def _named(tasks: Sequence[str], scores: Sequence[dict[str, Any]]) -> str:
    return "every task" if len(tasks) == len(scores) else ", ".join(tasks)
