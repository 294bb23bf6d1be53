"""The ledger: one line of JSON for every process that ended, appended and never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from clocs_core.contracts.scores import Score
from grid.cells import VERSION, Cell, Pretraining, digest
from grid.jsonlines import append_line, read_lines

__all__ = ["Curve", "Distances", "Entry", "Ledger", "Results", "protocol_id"]


def protocol_id(what: str) -> str:
    """The protocol in the form in which a line names it: "linear/1"."""
    return f"{what}/{VERSION}"


@attrs.frozen(kw_only=True)
class Distances:
    """Mean distances of embeddings within and between patients, and how often the first are the smaller ones.

    intra, inter: how many distances lie between two `edges`; empty in lines of before they were kept.
    """

    init: str
    intra_mean: float
    inter_mean: float
    separation: float
    edges: tuple[float, ...] = ()
    intra: tuple[int, ...] = ()
    inter: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class Curve:
    """The score of the validation part after every epoch of a fine-tuning."""

    init: str
    label_fraction: float
    metric: str
    epochs: tuple[int, ...]
    scores: tuple[float, ...]


@attrs.frozen(kw_only=True)
class Entry:
    """One line: a pre-training or an evaluation that ended, well or not.

    key: the digest of the pre-training, or of the cell at all labels. protocol: "pretrain/1", "linear/1" or
    "finetune/1". settings: what the key was made of. label_fractions: the F that were scored. predictions: the file of
    raw predictions, and folder: all that the process wrote, both below the folder of the grid. split: what certifies
    the parts, as in report.json. distances: within and between patients, of a pre-training. curves: of a fine-tuning,
    none in lines of before they were kept. notes: what the report says beside its scores. seconds: of the process; 0
    where it had ended before this line was written. finished: UTC. invocation: when the call of the grid began that
    wrote this line, by which invocations.jsonl knows it; "" in lines of before that was kept.
    """

    key: str
    protocol: str
    name: str
    seed: int
    status: str = attrs.field(validator=attrs.validators.in_(("done", "failed")))
    error: str = ""
    commit: str = ""
    finished: str = ""
    seconds: float = 0.0
    settings: dict[str, Any] = attrs.field(factory=dict)
    label_fractions: tuple[float, ...] = ()
    scores: tuple[Score, ...] = ()
    predictions: str = ""
    folder: str = ""
    split: dict[str, Any] = attrs.field(factory=dict)
    distances: tuple[Distances, ...] = ()
    curves: tuple[Curve, ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = attrs.field(factory=dict)
    invocation: str = ""


@attrs.frozen(eq=False)
class Results:
    """What a ledger holds. Of several lines for the same, the last that went well counts, else the last."""

    entries: tuple[Entry, ...] = ()
    _by_key: Mapping[tuple[str, str], list[Entry]] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        by_key: dict[tuple[str, str], list[Entry]] = {}
        for entry in self.entries:
            by_key.setdefault((entry.protocol, entry.key), []).append(entry)
        object.__setattr__(self, "_by_key", by_key)

    def pretraining(self, run: Pretraining) -> Entry | None:
        """The line of a pre-training."""
        return _latest(self._by_key.get((protocol_id("pretrain"), digest(run)), []))

    def cell(self, cell: Cell) -> Entry | None:
        """The line that holds the scores of a cell, or that says why there are none."""
        found = self._by_key.get((protocol_id(cell.protocol), digest(cell.evaluation)), [])
        return _latest([entry for entry in found if cell.label_fraction in entry.label_fractions])

    def is_done(self, cell: Cell) -> bool:
        """Whether the cell has been scored."""
        found = self.cell(cell)
        return found is not None and found.status == "done"


@attrs.frozen
class Ledger:
    """The file, and how it is read and added to."""

    path: Path

    def read(self) -> Results:
        """All whole lines. Raises RunFolderError where one that is not the last cannot be read."""
        return Results(read_lines(self.path, Entry, "a line of a ledger", "what it held is computed again"))

    def append(self, entry: Entry) -> None:
        """Add one line, whole. Raises OSError where the disk does not take it; the ledger is then as it was."""
        append_line(self.path, entry)


def _latest(entries: Iterable[Entry]) -> Entry | None:
    found = list(entries)
    done = [entry for entry in found if entry.status == "done"]
    return (done or found)[-1] if found else None
