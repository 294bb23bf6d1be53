"""Grids of experiments: one condition of a grid, a number that was published for it, and the offer of a whole grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import attrs

from clocs_core.contracts.offers import Offer
from clocs_core.contracts.scores import RANDOM

Figure = Literal["dots", "dimension", "labels", "perturbations", "less", "distances"]


def _six_digits(fraction: float) -> float:
    """Round a label fraction as it is written on a command line and in tables, or its scores would not be found."""
    return float(f"{fraction:g}")


@attrs.frozen(kw_only=True)
class Condition:
    """One line of a table, which is repeated over seeds and splits of patients.

    method: its name, or `random` for the untrained encoder. pretraining, downstream: names of data sets. leads: a
    preset of the data set such as "4", or names with commas; "" takes the data set's own. options: of the pre-training,
    as NAME=VALUE. exposure: how much the pre-training sees: "" for as much as each method does by default, or the same
    for all, "steps=10000" or "instances=2500000". part: whose patients are scored, `validation` or `test`. name: how
    tables call this line; default: the method and its options. printed_pretraining, printed_downstream: the published
    data sets of this place, where others stand in for them.
    """

    method: str
    pretraining: str
    downstream: str
    protocol: str
    leads: str = "4"
    embedding_dim: int = 128
    label_fraction: float = attrs.field(default=0.5, converter=_six_digits)
    options: tuple[str, ...] = ()
    part: str = "test"
    name: str = ""
    exposure: str = ""
    printed_pretraining: str = attrs.field()
    printed_downstream: str = attrs.field()

    @printed_pretraining.default
    def _same_pretraining(self) -> str:
        return self.pretraining

    @printed_downstream.default
    def _same_downstream(self) -> str:
        return self.downstream

    @property
    def context(self) -> Condition:
        """The condition without its method: methods are compared if they share it."""
        return attrs.evolve(self, method="", options=(), name="")

    @property
    def trains(self) -> bool:
        """Whether anything is pre-trained, which then needs its data."""
        return self.method != RANDOM

    @property
    def reads(self) -> tuple[str, ...]:
        """The data sets that are needed for a score."""
        return (self.pretraining, self.downstream) if self.trains else (self.downstream,)

    @property
    def row(self) -> str:
        """The condition as a row of a table names it."""
        return self.name or " ".join([self.method, *self.options])

    @property
    def line(self) -> str:
        """The row, with the exposure where it is not the method's own: what is pre-trained, in a list of all."""
        return f"{self.row}, {self.exposure}" if self.exposure else self.row


@attrs.frozen
class Published:
    """A published score to put beside ours: its mean and sd over seeds, and how it was printed."""

    mean: float
    sd: float
    printed: str


def nothing_published(one: Condition) -> Published | None:
    """Find no published score, for a grid that nobody printed."""
    return None


@attrs.frozen(kw_only=True)
class GridOffer(Offer):
    """A grid of experiments by name, for `clocs grid run NAME`. The summary is its title.

    conditions() lists the lines of its table. printed_in: where it is published, such as "Table 1, section 6.2".
    published(condition) finds the score that was published; None where there is none.
    needs_scores: False where nothing is evaluated, since pre-training alone is looked at.
    figure: how it is drawn: `dots` for each method; over the embedding `dimension` or the share of `labels`; by
    `perturbations`; with `less` labels beside random initialisation with all; or `distances` between patients.
    claim: two methods (a, b), to count in how many conditions a is above b.
    """

    kind: ClassVar[str] = "grid"
    conditions: Callable[[], Sequence[Condition]]
    printed_in: str = ""
    published: Callable[[Condition], Published | None] = nothing_published
    needs_scores: bool = True
    figure: Figure = "dots"
    claim: tuple[str, str] | None = None
