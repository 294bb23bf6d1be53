"""The axes of a grid: conditions, and how one axis of them is set to other values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
from paper_results import PaperCondition, PaperResults, PrintedScore

from grid.cells import RANDOM, GridCell, Pretraining


@attrs.frozen(kw_only=True)
class Repeats:
    """How often a condition is repeated, and the options of every repetition beyond its own.

    seeds: of weights and order. splits: of patients; the sd over splits is told apart from that over seeds.
    evaluate_options are of every evaluation, finetune_options of those that train.
    """

    seeds: tuple[int, ...] = (0,)
    splits: tuple[int, ...] = (0,)
    pretrain_options: tuple[str, ...] = ()
    evaluate_options: tuple[str, ...] = ()
    finetune_options: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Condition:
    """One line of a table: what is repeated over seeds and splits.

    options: of the pre-training, as NAME=VALUE. printed_pretraining, printed_downstream: the data sets of the paper
    that stand in this place; others may stand in for them. tau_d: as in the tables that vary it.
    """

    method: str
    pretraining: str
    downstream: str
    protocol: str
    leads: str = "4"
    embedding_dim: int = 128
    label_fraction: float = 0.5
    options: tuple[str, ...] = ()
    part: str = "test"
    tau_d: float | None = None
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
        return attrs.evolve(self, method="", options=(), tau_d=None)

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
        """The method as a row of a table names it, with what it differs in."""
        return " ".join([self.method, *self.options])

    def _not_its_own(self, general: tuple[str, ...]) -> tuple[str, ...]:
        """Leave out the general options that the condition sets itself."""
        own = {one.partition("=")[0] for one in self.options}
        return tuple(one for one in general if one.partition("=")[0] not in own)

    def pretrainings(self, repeats: Repeats) -> tuple[Pretraining, ...]:
        """List the pre-trainings of all repetitions, split by split."""
        return tuple(self._pretraining(seed, split, repeats) for split in repeats.splits for seed in repeats.seeds)

    def cells(self, repeats: Repeats) -> tuple[GridCell, ...]:
        """List the cells of all repetitions, split by split."""
        of_training = repeats.finetune_options if self.protocol == "finetune" else ()
        return tuple(
            GridCell(
                pretraining=run,
                downstream=self.downstream,
                protocol=self.protocol,
                label_fraction=self.label_fraction,
                part=self.part,
                options=(*repeats.evaluate_options, *of_training),
            )
            for run in self.pretrainings(repeats)
        )

    def printed(self, paper: PaperResults) -> PrintedScore | None:
        """Find the paper's own number; None where it has none."""
        if (self.options and self.tau_d is None) or not self.leads.isdecimal() or self.part != "test":
            return None
        asked = PaperCondition(
            protocol=self.protocol,
            method=self.method,
            pretraining=self.printed_pretraining,
            downstream=self.printed_downstream,
            leads=int(self.leads),
            embedding_dim=self.embedding_dim,
            label_fraction=self.label_fraction,
            tau_d=self.tau_d,
        )
        return paper.find(asked)

    def _pretraining(self, seed: int, split: int, repeats: Repeats) -> Pretraining:
        return Pretraining(
            method=self.method,
            dataset=self.pretraining
            if self.trains
            else "",  # so that tables of several sets share what depends on none
            leads=self.leads,
            embedding_dim=self.embedding_dim,
            seed=seed,
            split_seed=split,
            options=(*self.options, *self._not_its_own(repeats.pretrain_options)) if self.trains else (),
        )


def set_axis(conditions: Iterable[Condition], axis: str, values: Sequence[Any]) -> tuple[Condition, ...]:
    """Set an axis of the conditions to each of these values; every condition comes once."""
    return _once(attrs.evolve(one, **{axis: value}) for one in conditions for value in values)


def set_methods(conditions: Iterable[Condition], rows: Sequence[str]) -> tuple[Condition, ...]:
    """Put each of these methods into the conditions, with the options behind its colons."""
    return _once(
        attrs.evolve(one, method=method, options=(*one.options, *options))
        for one in conditions
        for method, options in map(read_method, rows)
    )


def read_method(text: str) -> tuple[str, tuple[str, ...]]:
    """Split a method from its options: "byol:loss=cosine:decay=0.99". Within a value, "+" stands for a comma."""
    method, *options = text.split(":")
    return method, tuple(option.replace("+", ",") for option in options)


def product(methods: Sequence[str], datasets: Sequence[str], downstream: Sequence[str]) -> tuple[Condition, ...]:
    """Pair methods with data sets: fine-tuned on the downstream sets, or linearly evaluated where there are none.

    A downstream set that is the pre-training set is evaluated linearly, as in the paper.
    """
    return _once(
        Condition(
            method=method,
            pretraining=dataset,
            downstream=target,
            protocol="linear" if target == dataset else "finetune",
            options=options,
        )
        for dataset in datasets
        for target in downstream or (dataset,)
        for method, options in map(read_method, methods)
    )


def replace_datasets(conditions: Iterable[Condition], names: Sequence[str]) -> tuple[Condition, ...]:
    """Replace data sets: "ptbxl" pre-trains on it alone, "chapman=ptbxl" has it stand in for Chapman.

    A stand-in takes its place downstream too, and the paper's number stays beside it. Without "=" the paper has no
    number to show: linear evaluation moves to the new set, fine-tuning keeps its downstream sets.
    """
    places = dict(name.split("=", 1) for name in names if "=" in name)
    plain = [name for name in names if "=" not in name]
    conditions = _once(_stand_in(one, places) for one in conditions)
    return _once(_moved(conditions, plain)) if plain else conditions


def replace_downstream(conditions: Iterable[Condition], names: Sequence[str]) -> tuple[Condition, ...]:
    """Set the downstream sets of the conditions."""
    return _once(attrs.evolve(one, downstream=name, printed_downstream=name) for one in conditions for name in names)


def _stand_in(one: Condition, places: dict[str, str]) -> Condition:
    return attrs.evolve(
        one,
        pretraining=places.get(one.pretraining, one.pretraining),
        downstream=places.get(one.downstream, one.downstream),
    )


def _moved(conditions: Iterable[Condition], names: Sequence[str]) -> Iterator[Condition]:
    for one in conditions:
        for name in names:
            downstream = name if one.downstream == one.pretraining else one.downstream
            if one.protocol == "finetune" and downstream == name:
                continue  # the paper fine-tunes on other data sets than it pre-trained on
            yield attrs.evolve(
                one,
                pretraining=name,
                downstream=downstream,
                printed_pretraining=name,
                printed_downstream=downstream,
            )


def _once(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    return tuple(dict.fromkeys(conditions))
