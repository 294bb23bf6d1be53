"""The units that are computed once: a pre-training, and a cell, which is a score of its encoder on a downstream task.

(method, pre-training set, leads, E, seed, split) -> encoder -> (downstream set, protocol, F) -> score
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import attrs
from attrs import validators

from clocs_core.contracts.scores import RANDOM

ENCODER = "encoder"
"""The option that names the architecture of the method `random`, which nothing else says."""

VERSION = 1
"""Raised when the same settings come to mean another computation: older lines, folders and draws count no longer."""


@attrs.frozen(kw_only=True)
class Pretraining:
    """One `clocs run`, or none where the method is `random`. Cells that share it share its encoder.

    leads: a preset such as "4", or names; "" takes the data set's own. split_seed: which patients train, validate and
    test. options: what else differs from the method's defaults, as NAME=VALUE.
    """

    method: str
    dataset: str
    leads: str = "4"
    embedding_dim: int = attrs.field(default=128, validator=validators.gt(0))
    seed: int = attrs.field(default=0, validator=validators.ge(0))
    split_seed: int = attrs.field(default=0, validator=validators.ge(0))
    options: tuple[str, ...] = ()

    @property
    def trains(self) -> bool:
        """Whether there is anything to run."""
        return self.method != RANDOM

    @property
    def untrained(self) -> str:
        """The architecture of the method `random`; "" where the grid names none."""
        return next((value for name, _, value in (one.partition("=") for one in self.options) if name == ENCODER), "")

    @property
    def name(self) -> str:
        """A name that a person can read. The hash at its end covers the settings that the words leave out."""
        leads = f"-L{self.leads.replace(',', '+')}" if self.leads else ""
        more = "".join(f"-{option.replace(',', '+')}" for option in self.options)
        dataset = f"-{self.dataset}" if self.dataset else ""
        words = f"{self.method}{dataset}{leads}-E{self.embedding_dim}{more}"[:80].replace("/", "_")
        return f"{words}-p{self.split_seed}-s{self.seed}-{digest(self)[:8]}"


@attrs.frozen(kw_only=True)
class GridCell:
    """One score: an encoder, a downstream data set, a protocol and the share F of its labels.

    part: whose patients are scored. options: settings of the evaluation beyond the protocol's own, as NAME=VALUE.
    """

    pretraining: Pretraining
    downstream: str
    protocol: str
    label_fraction: float = attrs.field(default=0.5, validator=[validators.gt(0.0), validators.le(1.0)])
    part: str = attrs.field(default="test", validator=validators.in_(("validation", "test")))
    options: tuple[str, ...] = ()

    @property
    def evaluation(self) -> GridCell:
        """The cell at all labels: what it shares with the other F of the same evaluation."""
        return attrs.evolve(self, label_fraction=1.0)

    @property
    def random(self) -> Random:
        """The untrained encoder that belongs beside this cell."""
        run = self.pretraining
        return Random(
            *(self.downstream, self.protocol, self.label_fraction, self.part, self.options),
            *(run.leads, run.embedding_dim, run.seed, run.split_seed),
        )


@attrs.frozen
class Random:
    """All that the score of an untrained encoder depends on, beside its architecture and its input: no method."""

    downstream: str
    protocol: str
    label_fraction: float
    part: str
    options: tuple[str, ...]
    leads: str
    embedding_dim: int
    seed: int
    split_seed: int


def digest(thing: attrs.AttrsInstance) -> str:
    """Hash all settings of a pre-training or a cell, with the version of the grid; the same in every process."""
    about = {"version": VERSION, **attrs.asdict(thing)}
    text = json.dumps(about, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def group_by_evaluation(cells: Iterable[GridCell]) -> dict[GridCell, tuple[GridCell, ...]]:
    """Group cells by the evaluation that scores them: one process embeds once and scores every F."""
    groups: dict[GridCell, list[GridCell]] = {}
    for cell in dict.fromkeys(cells):
        groups.setdefault(cell.evaluation, []).append(cell)
    return {key: tuple(sorted(group, key=lambda cell: cell.label_fraction)) for key, group in groups.items()}
