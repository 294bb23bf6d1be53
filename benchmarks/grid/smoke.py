"""Run the whole grid in miniature: every table and figure, on a few simulated patients and for an epoch or two.

It shows that everything runs, from the first pre-training to the page; its numbers mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from paper_results import DATASETS, PaperResults

from grid.axes import Condition, Repeats, replace_datasets
from grid.measure import Measure
from grid.tables import Preset, paper_presets

DATASET = "demo"

_FEW = ("patients=30", "resamples=20")
_SHORT = ("epochs=1", "batch_size=32")

# The values of each axis that are kept. The two tables of the main text keep all methods.
_MAIN = frozenset({"linear-main", "transfer-main"})
_KEPT = frozenset({("cmsc", ()), ("byol", ("decay=0.5",))})
_PERTURBED = frozenset({("simclr", ("perturbations=gaussian,sa_t",)), ("cmsc", ("perturbations=gaussian,sa_t",))})
_DIMS = {"4": frozenset({64, 128}), "12": frozenset({128})}
_SHARES = frozenset({0.25, 0.5, 1.0})


def smoke_presets(paper: PaperResults) -> tuple[Preset, ...]:
    """Make every table and figure with a few of its conditions, on the simulated data set in place of all others."""
    stand_ins = [f"{name}={DATASET}" for name in DATASETS]
    return tuple(
        attrs.evolve(preset, conditions=replace_datasets(_few(preset), stand_ins)) for preset in paper_presets(paper)
    )


def smoke_repeats() -> Repeats:
    """Ask for one seed, one split, and settings that keep every process short."""
    return Repeats(pretrain_options=(*_FEW, *_SHORT), evaluate_options=_FEW, finetune_options=_SHORT)


def smoke_measure(asked: Measure) -> Measure:
    """Measure what was asked for, with few bootstrap samples."""
    return attrs.evolve(asked, resamples=min(asked.resamples, 50))


def _few(preset: Preset) -> Iterable[Condition]:
    first = preset.conditions[0]
    for one in preset.conditions:
        same_place = (one.pretraining, one.downstream) == (first.pretraining, first.downstream)
        kept = preset.name in _MAIN or (one.method, one.options) in _KEPT | _PERTURBED
        if same_place and kept and one.embedding_dim in _DIMS[one.leads] and one.label_fraction in _SHARES:
            yield one
