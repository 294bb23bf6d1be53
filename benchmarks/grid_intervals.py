"""Compute the intervals and verdicts of the committed pages of the grid anew, from the committed scores.

    python benchmarks/grid_intervals.py

The scores of every seed are in benchmarks/results/grid/scores.csv. The draws of patients were not kept; what is left of
them is in patients.csv: the 95 % interval over patients of each mean and of each paired difference of means, with three
decimals, as the grid printed it. Its width divided by 3.92 is the standard deviation over patients. How much the
patients' and the seeds' variances overlap cannot be found from it: it is taken as 0, so that an interval is rather too
wide than too narrow. The means of several splits take the place of seeds; each split has other patients, so that there
the overlap is all of the patients' variance. A grid that is run now keeps its draws, and its pages need none of this.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from clocs_core.evaluation.over_seeds import NORMAL, interval_from_spreads
from clocs_core.grids.rows import INTERVAL, say_gain, say_range, say_reading

GRID = Path(__file__).parent / "results" / "grid"


@attrs.frozen
class Place:
    """Where methods are compared. options: of the evaluation. splits: how many; of one, it is split 0."""

    leads: str
    downstream: str
    label_fraction: str
    options: str
    splits: str = "1"


@attrs.frozen
class Found:
    """A mean over seeds, or a difference of two, with its interval over seeds and patients."""

    value: float
    low: float
    high: float
    values: tuple[float, ...]


@attrs.frozen
class Committed:
    """The committed scores (split, seed) of methods in a place, and intervals over patients of methods and pairs."""

    scores: dict[tuple[str, Place], dict[tuple[str, str], float]]
    patients: dict[tuple[str, str, Place], tuple[float, float]]

    def find(self, a: str, b: str, place: Place) -> Found:
        """Compute the mean of `a`, or of the paired difference a - b where there is a `b`."""
        once = attrs.evolve(place, splits="1")
        ours, theirs = self.scores[a, once], self.scores[b, once] if b else {}
        paired = {key: value - theirs.get(key, 0.0) for key, value in ours.items() if not b or key in theirs}
        by_split = [
            [value for (split, _), value in paired.items() if split == str(number)]
            for number in range(int(place.splits))
        ]
        low, high = self._ends(a, b, place)
        sd = (high - low) / (2 * NORMAL)
        if len(by_split) == 1:
            values, overlap = by_split[0], 0.0
        else:  # the means of splits take the place of seeds; each has patients of its own, so all of it overlaps
            values, overlap = [sum(one) / len(one) for one in by_split], sd**2
        return Found(sum(values) / len(values), *interval_from_spreads(values, sd, overlap), tuple(values))

    def _ends(self, a: str, b: str, place: Place) -> tuple[float, float]:
        if (a, b, place) in self.patients:
            return self.patients[a, b, place]
        low, high = self.patients[b, a, place]
        return -high, -low


def read_committed(folder: Path = GRID) -> Committed:
    """Read scores.csv and patients.csv, AUROC of frames."""
    scores: dict[tuple[str, Place], dict[tuple[str, str], float]] = {}
    with (folder / "scores.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if (row["metric"], row["level"]) == ("auroc", "frame"):
                place = Place(row["leads"], row["downstream"], row["label_fraction"], row["options"])
                scores.setdefault((row["method"], place), {})[row["split"], row["seed"]] = float(row["score"])
    with (folder / "patients.csv").open(encoding="utf-8", newline="") as stream:
        patients = {
            (row.pop("a"), row.pop("b"), Place(**row)): ends
            for row in csv.DictReader(stream)
            if (ends := (float(row.pop("low")), float(row.pop("high"))))
        }
    return Committed(scores, patients)


def rewrite(page: str, committed: Committed) -> str:
    """Write the intervals, gains and readings of a page anew, and leave all else as it is."""
    text = "\n".join(_lines(page, committed))
    told = len(re.findall(r"\| (?:cmsc \| simclr \|.* a is above|simclr \| cmsc \|.* a is below) \|", text))
    return re.sub(r"(?<=The interval over seeds and patients is above 0 in )\d+", str(told), text)


def _lines(page: str, committed: Committed) -> Iterator[str]:
    command = re.findall(r"^python .*", page, re.MULTILINE)[0]
    options = " ".join(re.findall(r"--evaluate-option (\S+)", command))
    splits = "".join(re.findall(r"--splits (\d+)", command)) or "1"
    shared: dict[str, str] = {}
    headings: list[str] = []
    for line in page.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if re.match(r"[a-z-]+ [^|]+, patients test$", line):
            shared = dict(part.split(" ", 1) for part in line.split(", "))
        if not cells:
            headings = []
        elif not headings:
            headings = cells
        elif INTERVAL in headings and set(line) - set("| -"):
            row = dict(zip(headings, cells, strict=True))
            about = shared | row
            place = Place(about["leads"], about["downstream"].split()[0], about["F"], options, splits)
            yield "| " + " | ".join(_renew(row, place, committed).values()) + " |"
            continue
        yield line


def _renew(row: dict[str, str], place: Place, committed: Committed) -> dict[str, str]:
    if "method" in row:
        own = committed.find(row["method"], "", place)
        renewed = row | {INTERVAL: say_range(own.low, own.high)}
        if row["above random"]:
            gain = committed.find(row["method"], "random", place)
            renewed["above random"] = say_gain(gain.value, gain.low, gain.high)
        return renewed
    found = committed.find(row["a"], row["b"], place)
    reading = say_reading(found.low, found.high, len(found.values))
    return row | {"a - b": f"{found.value:+.3f}", INTERVAL: say_range(found.low, found.high), "reading": reading}


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite every page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", type=Path, default=GRID, help="the folder of the pages")
    given = parser.parse_args(arguments)
    committed = read_committed(given.grid)
    for path in sorted(given.grid.glob("*.md")):
        path.write_text(rewrite(path.read_text(encoding="utf-8"), committed), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
