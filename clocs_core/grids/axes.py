"""The axes of a grid: how conditions are repeated, and how one axis of them is set to other values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from clocs_core.contracts.grids import Condition
from clocs_core.contracts.result_offers import FINETUNE, LINEAR
from clocs_core.errors import SettingsError
from clocs_core.grids.cells import ENCODER, GridCell, Pretraining

OWN = "own"
"""The exposure that each method has by default."""

_OF_RUNS = ("method", "dataset", "seed", "split_seed", "embedding_dim")
_OF_EVALUATIONS = (*_OF_RUNS, "protocol", "label_fraction", "part")
"""Settings that a grid has axes for. As options of all runs or evaluations they would win over them, unseen."""

_TOTALS = {"steps": "total_steps", "instances": "total_instances"}


@attrs.frozen(kw_only=True)
class Repeats:
    """How often a condition is repeated, and the options of every repetition beyond its own.

    seeds: of weights and order. splits: of patients; the sd over splits is told apart from that over seeds.
    evaluate_options are of every evaluation, finetune_options of those that train. encoder: that of the method
    `random`; "" where there is none.
    """

    seeds: tuple[int, ...] = (0,)
    splits: tuple[int, ...] = (0,)
    pretrain_options: tuple[str, ...] = ()
    evaluate_options: tuple[str, ...] = ()
    finetune_options: tuple[str, ...] = ()
    encoder: str = ""

    def __attrs_post_init__(self) -> None:
        _refuse_places("all runs", self.pretrain_options, _OF_RUNS)
        _refuse_places("all evaluations", (*self.evaluate_options, *self.finetune_options), _OF_EVALUATIONS)

    def runs(self, one: Condition) -> tuple[Pretraining, ...]:
        """List the pre-trainings of all repetitions of a condition, split by split."""
        return tuple(self._run(one, seed, split) for split in self.splits for seed in self.seeds)

    def cells(self, one: Condition) -> tuple[GridCell, ...]:
        """List the cells of all repetitions of a condition, split by split."""
        of_training = self.finetune_options if one.protocol == FINETUNE else ()
        return tuple(
            GridCell(
                pretraining=run,
                downstream=one.downstream,
                protocol=one.protocol,
                label_fraction=one.label_fraction,
                part=one.part,
                options=(*self.evaluate_options, *of_training),
            )
            for run in self.runs(one)
        )

    @property
    def _untrained(self) -> tuple[str, ...]:
        return (f"{ENCODER}={self.encoder}",) if self.encoder else ()

    def _run(self, one: Condition, seed: int, split: int) -> Pretraining:
        given = (*one.options, *exposure_options(one.exposure))
        own = set(map(_plain_name, given))  # these are not set by the general ones
        general = (option for option in self.pretrain_options if _plain_name(option) not in own)
        return Pretraining(
            method=one.method,
            dataset=one.pretraining if one.trains else "",  # so that tables of several sets share what depends on none
            leads=one.leads,
            embedding_dim=one.embedding_dim,
            seed=seed,
            split_seed=split,
            options=(*given, *general) if one.trains else self._untrained,
        )


def _plain_name(option: str) -> str:
    """Return the name of an option without its table: "loss.temperature=0.1" sets `temperature`, as an axis does."""
    return option.partition("=")[0].rpartition(".")[2]


def _refuse_places(whose: str, options: Iterable[str], places: Sequence[str]) -> None:
    """Raise SettingsError for an option of all rows that a grid sets for each of them: rows would have false names."""
    for name in map(_plain_name, options):
        if name in places:
            raise SettingsError(
                f"`{name}` is set for {whose} here, and a grid sets it for each row. Give an axis: under [axes], or "
                f"`--axis {name}=...`."
            )


def read_exposure(text: str) -> str:
    """Read how much methods see: "own", which is "", or "steps=N" or "instances=N". Raises SettingsError for others."""
    kind, _, count = text.partition("=")
    if text in ("", OWN):
        return ""
    if kind not in _TOTALS or not count.isdecimal() or int(count) < 1:
        raise SettingsError(
            f"An exposure is {OWN!r}, as each method has it, or the same for all: steps=10000 or instances=2500000, "
            f"got {text!r}."
        )
    return text


def exposure_options(exposure: str) -> tuple[str, ...]:
    """Give the options of a pre-training that sees so much: all of it is trained, and the last weights are kept.

    Early stopping, or weights of an earlier epoch, would make the exposure of what is scored unequal again.
    """
    kind, _, count = exposure.partition("=")
    return (f"{_TOTALS[kind]}={count}", "keep=last") if exposure else ()


def set_axis(conditions: Iterable[Condition], axis: str, values: Sequence[Any]) -> tuple[Condition, ...]:
    """Set an axis of the conditions to each of these values; every condition comes once."""
    return _once(attrs.evolve(one, **{axis: value}) for one in conditions for value in values)


def set_methods(conditions: Iterable[Condition], rows: Sequence[str]) -> tuple[Condition, ...]:
    """Put each of these methods into the conditions, with the options behind its colons.

    Which epoch is kept was chosen for the method that is replaced: that option goes with it.
    """
    return _once(
        attrs.evolve(one, method=method, options=(*_without_rule(one.options), *options))
        for one in conditions
        for method, options in map(read_method, rows)
    )


def read_method(text: str) -> tuple[str, tuple[str, ...]]:
    """Split a method from its options: "method:loss=cosine:decay=0.99". Within a value, "+" stands for a comma."""
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
            protocol=LINEAR if target == dataset else FINETUNE,
            options=options,
        )
        for dataset in datasets
        for target in downstream or (dataset,)
        for method, options in map(read_method, methods)
    )


def replace_datasets(conditions: Iterable[Condition], names: Sequence[str]) -> tuple[Condition, ...]:
    """Replace data sets: "mine" pre-trains on it alone, "theirs=mine" has it stand in for "theirs".

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


def _without_rule(options: Iterable[str]) -> tuple[str, ...]:
    return tuple(option for option in options if option.partition("=")[0] != "keep")


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
            if one.protocol == FINETUNE and downstream == name:
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
