"""Run the whole grid in miniature: every table and figure, on a few simulated patients and for an epoch or two.

It shows that everything runs, from the first pre-training to the page; its numbers mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from clocs_core.contracts.grids import Condition
from clocs_core.grids.axes import Repeats, replace_datasets
from clocs_core.grids.measure import Measure
from clocs_core.grids.presets import Preset
from clocs_plugins.paper_tables.printed import DATASETS
from clocs_plugins.paper_tables.published import PAPERS_RULE
from clocs_plugins.paper_tables.tables import paper_grids

DATASET = "demo"

_FEW = ("patients=30", "resamples=20")
_SHORT = ("epochs=1", "batch_size=32")

# Each value of every axis is touched somewhere: perturbations in figure 3, where they are dealt to SimCLR and CMSC, the
# other methods in tables 1 and 2, decays in table 23, E in figure 9, F in figure 5b. Elsewhere the fewest are left.
_METHODS = {
    "linear-main": frozenset({"mt-ssl", "byol", "cmlc", "cmsmlc", "cmsc"}),
    "transfer-main": frozenset({"supervised", "cmsc"}),
}
_DECAYS = {"byol-tau-linear": frozenset({(), ("decay=0.5",), ("decay=0.99",), PAPERS_RULE})}
_DIMS = {"patient-distances-by-dimension": frozenset({32, 64, 128, 256}), "effect-of-labels": frozenset({64})}
_SHARES = {"effect-of-labels": frozenset({0.25, 0.5, 0.75, 1.0}), "more-with-less": frozenset({0.25, 1.0})}


def smoke_presets() -> tuple[Preset, ...]:
    """Make every table and figure with a few of its conditions, on the simulated data set in place of all others."""
    stand_ins = [f"{name}={DATASET}" for name in (*DATASETS, "ptbxl")]
    presets = [Preset.of(offer) for offer in paper_grids()]
    return tuple(attrs.evolve(one, conditions=replace_datasets(map(_short, _few(one)), stand_ins)) for one in presets)


def smoke_repeats() -> Repeats:
    """Ask for one seed, one split, and settings that keep every process short."""
    return Repeats(pretrain_options=(*_FEW, *_SHORT), evaluate_options=_FEW, finetune_options=_SHORT)


def smoke_measure(asked: Measure) -> Measure:
    """Measure what was asked for, with few bootstrap samples."""
    return attrs.evolve(asked, resamples=min(asked.resamples, 50))


def _short(one: Condition) -> Condition:
    return attrs.evolve(one, exposure="steps=2") if one.exposure else one


def _few(preset: Preset) -> Iterable[Condition]:
    first = preset.conditions[0]
    shares = _SHARES.get(preset.name, frozenset({0.5} if preset.figure != "dimension" else {0.25}))
    dims = _DIMS.get(preset.name, frozenset({64, 128} if preset.figure == "dimension" else {128}))
    for one in preset.conditions:
        same_place = (one.pretraining, one.downstream) == (first.pretraining, first.downstream)
        if same_place and one.embedding_dim in dims and one.label_fraction in shares and _is_kept(preset, one):
            yield one


def _is_kept(preset: Preset, one: Condition) -> bool:
    if preset.figure == "perturbations":  # the first method has the single ones, the second the sequences
        return ("," in one.options[0]) == (one.method != preset.conditions[0].method)
    if preset.name.startswith("byol-tau"):
        return one.options in _DECAYS.get(preset.name, frozenset({("decay=0.5",)}))
    return one.method in _METHODS.get(preset.name, frozenset({"cmsc"}))
