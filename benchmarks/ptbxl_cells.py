"""Cells and tables in Markdown, for the page of results on PTB-XL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ptbxl_rows import IDENTIFICATION, LINEAR, TASKS
from ptbxl_scores import score_of

PROTOCOLS = {
    "finetune": "fine-tuned",
    "attention-pool": "attention pool",
    "knn": "nearest neighbours",
    IDENTIFICATION: "patient identification, recall at 1",
}
"""Protocols besides the linear one, and how the page calls them."""


def as_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines)]


def score_cell(one: dict[str, Any]) -> str:
    """Return a score and its distance from the untrained encoder, each with its interval."""
    (value, low, high), (gain, least, most) = score_of(one), one["gain"]
    return f"{value:.3f} [{low:.3f}, {high:.3f}]; {gain:+.3f} [{least:+.3f}, {most:+.3f}]"


def protocol_words(one: dict[str, Any]) -> str:
    """Name the protocol of a score."""
    return "linear" if one["protocol"] == LINEAR else PROTOCOLS[one["protocol"]]


def published_cells(one: dict[str, Any]) -> list[str]:
    """Return the cells of a published row: name, data, parameters, source, scores."""
    figures = [f"{one['scores'][task]:.3f}" if task in one["scores"] else "" for task in TASKS]
    return [one["name"], one.get("data", ""), one.get("parameters", ""), f"({one['source']})", *figures]
