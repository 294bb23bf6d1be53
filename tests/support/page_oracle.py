"""Recompute every number with an interval on a page of `clocs grid page --pages`, from the .csv files of exports.

Written in loops from docs/protocols.md; shares no code with clocs. For tables of one split.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, variance

import attrs
from scipy.stats import t as student

PLACES = ("pre-training", "downstream", "protocol", "leads", "E", "F", "patients", "exposure")
INTERVAL = "95 % over seeds and patients"
NORMAL = 1.959963984540054


@attrs.frozen
class Files:
    """The lines of scores.csv and patients.csv of all exports."""

    scores: list[dict[str, str]]
    patients: list[dict[str, str]]


def read_files(exports: Sequence[Path]) -> Files:
    """Read both files of every export."""
    found = []
    for name in ("scores.csv", "patients.csv"):
        rows: list[dict[str, str]] = []
        for folder in exports:
            with (folder / name).open(encoding="utf-8", newline="") as stream:
                rows += csv.DictReader(stream)
        found.append([row for row in rows if (row["metric"], row["level"]) == ("auroc", "frame")])
    return Files(*found)


def check_page(page: Path, exports: Sequence[Path]) -> int:
    """Compare a page with the files. Return how many intervals were compared."""
    files, count = read_files(exports), 0
    for row in _tables(page.read_text(encoding="utf-8")):
        if "reading" in row:
            expected = _judge(files, row, row["a"], row["b"])
            assert expected is not None, row
            value, low, high, seeds = expected
            assert row["a - b"] == f"{value:+.3f}", (row, expected)
            assert row[INTERVAL] == f"{low:.3f} – {high:.3f}", (row, expected)
            word = "one seed" if seeds < 2 else "a is above" if low > 0 else "a is below" if high < 0 else ""
            assert row["reading"] == (word or "not told apart"), (row, expected)
            assert row["repetitions"] == str(seeds)
            count += 1
        elif row.get(INTERVAL):
            found = _judge(files, row, row["method"], "")
            assert found is not None, row
            assert row[INTERVAL] == f"{found[1]:.3f} – {found[2]:.3f}", (row, found)
            assert row["ours, mean ± sd over seeds"].startswith(f"{found[0]:.3f}"), (row, found)
            count += 1
            if "[" in row["above random"]:
                gain = _judge(files, row, row["method"], "random")
                assert gain is not None, row
                assert row["above random"] == f"{gain[0]:+.3f} [{gain[1]:+.3f}, {gain[2]:+.3f}]", (row, gain)
                count += 1
    return count


def _tables(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of all tables of a page, with what stands above a table for all of its rows."""
    shared: dict[str, str] = {}
    headings: list[str] = []
    for line in text.splitlines():
        if line.startswith("| "):
            cells = [cell.strip() for cell in line[1:-1].split("|")]
            if not headings:
                headings = cells
            elif not line.startswith("| --"):
                yield {**shared, **dict(zip(headings, cells, strict=True))}
        elif line.strip():
            headings = []
            parts = [part.split(" ", 1) for part in line.split(", ")]
            shared = dict(parts) if all(len(part) == 2 and part[0] in PLACES for part in parts) else {}


def _judge(files: Files, row: dict[str, str], a: str, b: str) -> tuple[float, float, float, int] | None:
    """Compute mean, interval and number of seeds of one method, or of the difference of two."""
    ours, one, encoder = _scores(files, row, a)
    theirs, other, _ = _scores(files, row, f"random {encoder}" if b == "random" else b) if b else ({}, "", "")
    other = "random" if b == "random" else other  # a gain is over the untrained encoder of its own method
    seeds = [seed for seed in ours if not b or seed in theirs]
    values = [ours[seed] - theirs.get(seed, 0.0) for seed in seeds]
    for spread in files.patients:
        names = spread["a"], spread["b"]
        if names not in ((one, other), (other, one)) or not _is_at(spread, row, a.startswith("random")):
            continue
        if sorted(spread["repetitions"].split()) != sorted(f"{split}/{seed}" for split, seed in seeds):
            continue
        mean = fmean(values)
        if len(values) == 1:
            sign = 1 if names == (one, other) else -1
            ends = sorted(sign * float(spread[end]) for end in ("low", "high"))
            return mean, ends[0], ends[1], 1
        half = _half_width(values, float(spread["sd"]), float(spread["overlap"]))
        least = -1.0 if b else 0.0  # of an AUROC, or of the difference of two
        return mean, max(least, mean - half), min(1.0, mean + half), len(values)
    return None


def _half_width(values: Sequence[float], sd: float, overlap: float) -> float:
    between, patients = variance(values) / len(values), sd**2
    shared = min(overlap, patients)
    if between <= shared:
        return NORMAL * sd
    quantile = student.ppf(0.975, len(values) - 1)
    total = patients + between - shared
    return (between * quantile + (patients - shared) * NORMAL) / total * math.sqrt(total)


def _scores(files: Files, row: dict[str, str], name: str) -> tuple[dict[tuple[str, str], float], str, str]:
    """Find the scores of a row by split and seed; the method with its options as the files name it; and its encoder."""
    found, method, encoder = {}, name, ""
    for line in files.scores:
        if line["name"] == "random":
            if name in ("random", f"random {line['encoder']}") and _is_at(line, row, True):
                found[line["split"], line["seed"]] = float(line["score"])
                method = f"random {line['encoder']}"
        elif line["name"] == name and _is_at(line, row, False):
            steps = re.search(r"total_(steps|instances)=(\d+)", line["method"])
            exposure = f"{steps[1]}={steps[2]}" if steps else "own"
            if exposure == row.get("exposure", "own"):
                found[line["split"], line["seed"]] = float(line["score"])
                method, encoder = line["method"], line["encoder"]
    return found, method, encoder


def _is_at(line: dict[str, str], row: dict[str, str], untrained: bool) -> bool:
    """Tell whether a line of a file stands at the place of a row. An untrained encoder has no pre-training set."""
    names = {"downstream": "downstream", "protocol": "protocol", "E": "embedding_dim", "F": "label_fraction"}
    names |= {"patients": "part"} | ({} if untrained else {"pre-training": "pretraining"})
    asked = {line_name: row[place].split(" (for ")[0] for place, line_name in names.items()}
    asked["leads"] = "" if row["leads"] == "own" else row["leads"]
    return all(line[name] == value for name, value in asked.items())
