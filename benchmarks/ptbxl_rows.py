"""The rows of the table on PTB-XL, which of their runs and evaluations are finished, and where these lie."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

TASKS = ("all", "diagnostic", "subclass", "superclass", "form", "rhythm")
HERE = Path(__file__).parent
LINEAR = "linear-record"
"""The protocol of the main table, and of the scores by label fraction."""
IDENTIFICATION = "patient-identification"
TEST_FOLD = 10
"""The fold that tests, as published."""


@attrs.frozen
class Row:
    """A row of the table. evaluations: settings of each evaluation beside the linear one on all tasks."""

    name: str
    method: str
    encoder: str
    frames: str = "whole"
    task: str = "superclass"
    seeds: int = 1
    options: dict[str, Any] = attrs.field(factory=dict)
    evaluations: tuple[dict[str, Any], ...] = ()


@attrs.frozen
class Place:
    """Where recordings, runs and results lie, and which fold is scored.

    also: protocols by which every row is evaluated, besides those that it asks for.
    """

    root: Path
    out: Path
    part: str
    device: str
    tasks: tuple[str, ...] = TASKS
    test_fold: int = TEST_FOLD
    also: tuple[str, ...] = ()

    def folder(self, row: Row, seed: int) -> Path:
        """Return the run folder of a row's seed. Another test fold is another training part."""
        name = row.name.replace(" ", "-").replace(",", "")
        return self.out / ("" if self.test_fold == TEST_FOLD else f"test-fold-{self.test_fold}") / name / f"seed{seed}"


def read_rows(path: Path) -> list[Row]:
    """Read the rows of the table."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Row(**{**one, "evaluations": tuple(one.get("evaluations", ()))}) for one in found["rows"]]


def evaluations(row: Row, place: Place) -> Iterable[dict[str, Any]]:
    """Yield the settings of every evaluation of a row: the linear ones, what the row asks for, and what all have."""
    c: dict[str, object] = {"C": 0.01} if place.part == "validation" else {"C": "auto"}
    yield from ({"protocol": LINEAR, "task": task, **c} for task in place.tasks)
    yield from row.evaluations
    yield from ({"protocol": protocol, "task": "superclass"} for protocol in place.also)


def is_finished(row: Row, seed: int, place: Place) -> bool:
    """Return whether a run and all of its evaluations have a report."""
    folder = place.folder(row, seed)
    evaluated = (evaluation_folder(folder, number, how, place) for number, how in enumerate(evaluations(row, place)))
    return all((one / "report.json").exists() for one in (folder, *evaluated))


def evaluation_folder(run: Path, number: int, how: dict[str, Any], place: Place) -> Path:
    """Return the folder of an evaluation of a run. number: its place among those of the row; how: its settings."""
    return run / "table" / f"{number}-{how['protocol']}-{how['task']}-{place.part}"
