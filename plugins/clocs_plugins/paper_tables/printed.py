"""The numbers of the paper's tables, to hold ours against.

    from clocs_plugins.paper_tables.printed import PaperCondition, load_results

    asked = PaperCondition(protocol="linear", method="cmsc", pretraining="chapman", downstream="chapman")
    load_results().find(asked).mean   # 0.896

They lie in printed.toml, which benchmarks/extract_paper_results.py makes from the TeX of the paper (Kiyasseh, Zhu and
Clifton, "CLOCS: Contrastive Learning of Cardiac Signals Across Space, Time, and Patients", ICML 2021).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import attrs
from attrs import validators

RESULTS = Path(__file__).with_suffix(".toml")

METHODS = ("random", "supervised", "mt-ssl", "byol", "simclr", "cmsc", "cmlc", "cmsmlc")
DATASETS = ("chapman", "physionet2020", "physionet2017", "cardiology")

_SCORE = re.compile(r"(?P<mean>\d\.\d+) ± (?P<sd>\d\.\d+)")
_COUNT = re.compile(r"(?P<instances>[\d,]+)(?: \((?P<patients>[\d,]+)\)| × (?P<axes>\d?S(?: × L)?))")


@attrs.frozen(kw_only=True)
class PaperCondition:
    """The conditions that a score of the paper depends on. The defaults are the condition of the main text."""

    protocol: str
    method: str
    pretraining: str
    downstream: str
    leads: int = 4
    embedding_dim: int = 128
    label_fraction: float = 0.5
    tau_d: float | None = None


@attrs.frozen
class PrintedScore:
    """One `mean ± sd` of a table: the test AUC over five seeds.

    `printed_in` is the table of the paper, "7a" for Table 7 (a), and `printed` the cell to the last digit. `leads`
    counts those of the data sets that have several; cardiology and physionet2017 have one. `tau_d` is there where the
    table varies it; everywhere else BYOL has 0.9 (section 5.5).
    """

    table: str
    section: str
    printed_in: str
    protocol: str = attrs.field(validator=validators.in_(("linear", "finetune")))
    method: str = attrs.field(validator=validators.in_(METHODS))
    pretraining: str = attrs.field(validator=validators.in_(DATASETS))
    downstream: str = attrs.field(validator=validators.in_(DATASETS))
    leads: int = attrs.field(validator=validators.in_((4, 12)))
    embedding_dim: int = attrs.field(validator=validators.in_((32, 64, 128, 256)))
    label_fraction: float = attrs.field(validator=validators.in_((0.25, 0.5, 0.75, 1.0)))
    tau_d: float | None
    mean: float
    sd: float
    printed: str


@attrs.frozen
class Count:
    """How many instances a part of a data set has: what a method is pre-trained on, or a downstream task.

    `method` and `axes` are those of pre-training, the axes as in "2S × L" (S samples, L leads); `patients` are given
    for downstream tasks.
    """

    table: str
    section: str
    printed_in: str
    dataset: str = attrs.field(validator=validators.in_(DATASETS))
    method: str | None
    part: str = attrs.field(validator=validators.in_(("train", "validation", "test")))
    instances: int
    patients: int | None
    axes: str | None
    printed: str


@attrs.frozen
class PaperResults:
    """Every cell and every count, in the order of the paper."""

    cells: tuple[PrintedScore, ...]
    counts: tuple[Count, ...]

    def find(self, asked: PaperCondition, table: str | None = None) -> PrintedScore | None:
        """Find the score of a condition; None where the paper has no number for it.

        A score that stands in the main text and in an appendix is taken from the main text; `table` asks for one table.
        """
        wanted = attrs.asdict(asked).items()
        found = (cell for cell in self.cells if all(getattr(cell, name) == value for name, value in wanted))
        return next((cell for cell in found if table in (None, cell.table)), None)


@cache
def load_results(path: Path = RESULTS) -> PaperResults:
    """Load the paper's numbers. Raises ValueError for a row of another form than the file promises."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    cells = (cell for name, table in tables.items() if "protocol" in table for cell in _cells(name, table))
    counts = (count for name, table in tables.items() if "protocol" not in table for count in _counts(name, table))
    return PaperResults(tuple(cells), tuple(counts))


def _cells(name: str, table: dict[str, Any]) -> Iterator[PrintedScore]:
    shared = {"table": name, "tau_d": None} | {key: table[key] for key in ("section", "protocol", "leads")}
    columns = list(zip(table["pretraining"], table["downstream"], strict=True))
    for row, printed in _rows(name, table, len(columns)):
        for (pretraining, downstream), text in zip(columns, printed, strict=True):
            if text:
                score = _match(_SCORE, text, name)
                figures = {"mean": float(score["mean"]), "sd": float(score["sd"]), "printed": text}
                yield PrintedScore(**{**shared, **row, "pretraining": pretraining, "downstream": downstream, **figures})


def _counts(name: str, table: dict[str, Any]) -> Iterator[Count]:
    shared = {"table": name, "section": table["section"], "method": None}
    for row, printed in _rows(name, table, len(table["parts"])):
        for part, text in zip(table["parts"], printed, strict=True):
            count = _match(_COUNT, text, name)
            patients = _whole(count["patients"]) if count["patients"] else None
            figures = {"instances": _whole(count["instances"]), "patients": patients, "axes": count["axes"]}
            yield Count(**{**shared, **row, "part": part, **figures, "printed": text})


def _rows(name: str, table: dict[str, Any], columns: int) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Split each row into its conditions by name and its cells as printed."""
    names = table["conditions"]
    for row in table["rows"]:
        if len(row) != len(names) + columns:
            raise ValueError(f"{name}: row {row} has {len(row)} entries, expected {len(names)} and {columns} cells.")
        yield dict(zip(names, row[: len(names)], strict=True)), row[len(names) :]


def _match(form: re.Pattern[str], text: str, name: str) -> re.Match[str]:
    found = form.fullmatch(text)
    if not found:
        raise ValueError(f"{name}: cell {text!r} is not of the form {form.pattern}.")
    return found


def _whole(text: str) -> int:
    return int(text.replace(",", ""))
