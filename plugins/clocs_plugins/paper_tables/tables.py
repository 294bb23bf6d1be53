"""Define every table and figure of the paper as a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import attrs

from clocs_core import Condition, GridOffer
from clocs_plugins.paper_tables.published import PAPERS_RULE, find_decay, find_printed

Figure = Literal["dots", "dimension", "labels", "perturbations", "less", "distances"]

_DIMS = (32, 64, 128, 256)
_SHARES = (0.25, 0.5, 0.75, 1.0)

# "Sequential perturbations involve a Gaussian perturbation followed by one of the remaining four types." (figure 3)
_SINGLE = ("gaussian", "flip_y", "flip_x", "sa_t", "sa_f")
PERTURBATIONS = (*_SINGLE, *(f"gaussian,{second}" for second in _SINGLE[1:]))

# SimCLR compares "instances and their perturbed counterparts" (section 5.4): one copy is perturbed. Two copies under
# FlipY or FlipX, which draw nothing, would be equal.
_ONE_COPY = {"simclr": ("perturb=one",)}

CLAIM = ("cmsc", "simclr")
"""The paper's claim: the first is above the second."""


EQUAL_STEPS = "steps=10000"
"""The exposure of all methods in `equal-exposure`: between those that methods choose, about 900 and 20,000 steps."""


def paper_grids() -> tuple[GridOffer, ...]:
    """List every table and figure of the paper that is made of scores, in its order, and one that it asks for."""
    less = "Fine-tuning from CMSC with fewer labels beside random initialisation with all, validation patients"
    perturbed = "The effect of perturbations on SimCLR and CMSC, linear evaluation, F = 0.5"
    dimension = "The effect of the embedding dimension E, Chapman to Cardiology, F = 0.25"
    exposed = "Methods as each stops by itself, and all with the same number of steps, PTB-XL, linear, F = 0.5, E = 128"
    labels = "The effect of the share F of labels, Chapman to Cardiology, E = 64"
    return (
        _figure("perturbations", "Figure 3, section 6.1", perturbed, _perturbations, "perturbations"),
        _table("linear-main", "Table 1, section 6.2", "Linear evaluation, F = 0.5, E = 128, 4 leads"),
        _table("transfer-main", "Table 2, section 6.3", "Fine-tuning on other data sets, F = 0.5, E = 128, 4 leads"),
        _figure("more-with-less", "Figure 4, section 6.4", less, _more_with_less, "less"),
        _figure("effect-of-dimension", "Figure 5a, section 6.5", dimension, _effect_of_dimension, "dimension"),
        _figure("effect-of-labels", "Figure 5b, section 6.5", labels, _effect_of_labels, "labels"),
        _distances("patient-distances", "Figure 6, section 6.6", Distances(("simclr", "cmsc"), (128,))),
        _table("linear-4-leads", "Tables 7-10, section D.1", "Linear evaluation by E and F, 4 leads"),
        _table("linear-12-leads", "Tables 11-14, section D.2", "Linear evaluation by E and F, 12 leads"),
        _table("transfer-4-leads", "Tables 15-18, section E.1", "Fine-tuning by E and F, 4 leads"),
        _table("transfer-12-leads", "Tables 19-22, section E.2", "Fine-tuning by E and F, 12 leads"),
        _table("byol-tau-linear", "Table 23, section F.1", "The decay tau_d of BYOL, linear evaluation by F"),
        _table("byol-tau-transfer", "Table 24, section F.2", "The decay tau_d of BYOL, fine-tuning by F"),
        _distances("patient-distances-by-dimension", "Figure 9, section G.1", Distances(("cmsc",), _DIMS)),
        GridOffer(name="equal-exposure", summary=exposed, conditions=_equal_exposure, claim=CLAIM),
    )


@attrs.frozen
class Printed:
    """Lists the conditions that a table of the paper has. Random initialisation comes with every evaluation."""

    table: str

    def __call__(self) -> tuple[Condition, ...]:
        """Read the table."""
        from clocs_plugins.paper_tables.printed import load_results

        return tuple(
            Condition(
                method=cell.method,
                pretraining=cell.pretraining,
                downstream=cell.downstream,
                protocol=cell.protocol,
                leads=str(cell.leads),
                embedding_dim=cell.embedding_dim,
                label_fraction=cell.label_fraction,
                options=options,
            )
            for cell in load_results().cells
            if cell.table == self.table and cell.method != "random"
            for options in _rows(cell.method, cell.tau_d)
        )


@attrs.frozen
class Distances:
    """Lists the pre-trainings whose distances within and between patients a figure shows."""

    methods: tuple[str, ...]
    dims: tuple[int, ...]

    def __call__(self) -> tuple[Condition, ...]:
        """List a condition for each dimension and method."""
        name = "physionet2020"
        return tuple(
            Condition(method=one, pretraining=name, downstream=name, protocol="linear", embedding_dim=dim)
            for dim in self.dims
            for one in self.methods
        )


def _table(name: str, where: str, title: str) -> GridOffer:
    find = find_decay if name.startswith("byol-tau") else find_printed
    return attrs.evolve(_figure(name, where, title, Printed(name), "dots"), published=find)


def _figure(
    name: str, where: str, title: str, conditions: Callable[[], tuple[Condition, ...]], figure: Figure
) -> GridOffer:
    return GridOffer(
        name=name,
        summary=title,
        printed_in=where,
        conditions=conditions,
        published=find_printed,
        figure=figure,
        claim=CLAIM,
    )


def _distances(name: str, where: str, conditions: Distances) -> GridOffer:
    title = "Distances of embeddings within and between validation patients"
    return GridOffer(
        name=name, summary=title, printed_in=where, conditions=conditions, figure="distances", needs_scores=False
    )


def _rows(method: str, tau_d: float | None) -> tuple[tuple[str, ...], ...]:
    """Give the options of each row of a method. BYOL has two: by its own rule of what is kept, and by the paper's.

    The decay 0.9 is its default: without an option, that pre-training is shared with other tables.
    """
    decay = () if tau_d in (None, 0.9) else (f"decay={tau_d:g}",)
    return (decay, (*decay, *PAPERS_RULE)) if method == "byol" else (decay,)


def _perturbations() -> tuple[Condition, ...]:
    return tuple(
        Condition(
            method=method,
            pretraining="physionet2020",
            downstream="physionet2020",
            protocol="linear",
            options=(f"perturbations={chosen}", *_ONE_COPY.get(method, ())),
        )
        for method in ("simclr", "cmsc")
        for chosen in PERTURBATIONS
    )


def _more_with_less() -> tuple[Condition, ...]:
    return tuple(
        Condition(
            method="cmsc",
            pretraining=pretraining,
            downstream=downstream,
            protocol="finetune",
            label_fraction=share,
            part="validation",
        )
        for pretraining, downstream in (("physionet2020", "cardiology"), ("chapman", "physionet2017"))
        for share in _SHARES
    )


def _effect_of_dimension() -> tuple[Condition, ...]:
    return tuple(_to_cardiology((dim, 0.25) for dim in _DIMS))


def _effect_of_labels() -> tuple[Condition, ...]:
    return tuple(_to_cardiology((64, share) for share in _SHARES))


def _equal_exposure() -> tuple[Condition, ...]:
    """List the ranking of methods twice. Section 5.2: "we expose them to an equal number of patients and instances".

    Steps of all methods have batches of one size here, so that equally many steps see about equally many instances.
    """
    return tuple(
        Condition(method=method, pretraining="ptbxl", downstream="ptbxl", protocol="linear", exposure=exposure)
        for exposure in ("", EQUAL_STEPS)
        for method in ("supervised", "mt-ssl", "byol", "simclr", "cmlc", "cmsmlc", "cmsc")
    )


def _to_cardiology(places: Iterable[tuple[int, float]]) -> Iterator[Condition]:
    for dim, share in places:
        for method in ("simclr", "cmsc", "cmlc", "cmsmlc"):
            yield Condition(
                method=method,
                pretraining="chapman",
                downstream="cardiology",
                protocol="finetune",
                embedding_dim=dim,
                label_fraction=share,
            )
