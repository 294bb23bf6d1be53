"""Define every table and figure of the paper as a grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import attrs
from paper_results import PaperResults

from clocs_core.errors import UnknownName, neighbours
from grid.axes import Condition

Figure = Literal["dots", "dimension", "labels", "perturbations", "less", "distances"]

_DIMS = (32, 64, 128, 256)
_SHARES = (0.25, 0.5, 0.75, 1.0)

# "Sequential perturbations involve a Gaussian perturbation followed by one of the remaining four types." (figure 3)
_SINGLE = ("gaussian", "flip_y", "flip_x", "sa_t", "sa_f")
PERTURBATIONS = (*_SINGLE, *(f"gaussian,{second}" for second in _SINGLE[1:]))

_TABLES = {
    "linear-main": ("Table 1", "Linear evaluation, F = 0.5, E = 128, 4 leads"),
    "transfer-main": ("Table 2", "Fine-tuning on other data sets, F = 0.5, E = 128, 4 leads"),
    "linear-4-leads": ("Tables 7-10", "Linear evaluation by E and F, 4 leads"),
    "linear-12-leads": ("Tables 11-14", "Linear evaluation by E and F, 12 leads"),
    "transfer-4-leads": ("Tables 15-18", "Fine-tuning by E and F, 4 leads"),
    "transfer-12-leads": ("Tables 19-22", "Fine-tuning by E and F, 12 leads"),
    "byol-tau-linear": ("Table 23", "The decay tau_d of BYOL, linear evaluation by F"),
    "byol-tau-transfer": ("Table 24", "The decay tau_d of BYOL, fine-tuning by F"),
}

ELSEWHERE = (
    ("Figures 1, 2", "drawings of the methods: docs/methods.md"),
    ("Tables 3, 4", "sizes of the parts: every split certificate of a page has ours"),
    ("Tables 5, 6", "the network and the batch sizes: defaults of the encoder and of the data sets"),
    ("Figures 7, 8", "perturbed frames: docs/perturbations.md"),
)
"""Other tables and figures of the paper, and where their content is here."""


@attrs.frozen(kw_only=True)
class Preset:
    """A table or figure of the paper: where it stands, its conditions, and how it is drawn.

    needs_scores: False where pre-training alone is looked at.
    """

    name: str
    printed_in: str
    section: str
    title: str
    conditions: tuple[Condition, ...]
    figure: Figure = "dots"
    needs_scores: bool = True

    @property
    def datasets(self) -> tuple[str, ...]:
        """Every data set that is read."""
        read = (one.reads if self.needs_scores else (one.pretraining,) for one in self.conditions)
        return tuple(dict.fromkeys(name for names in read for name in names))


def paper_presets(paper: PaperResults) -> tuple[Preset, ...]:
    """List every table and figure of the paper that is made of scores, in its order."""
    tables = {name: _table(name, paper) for name in _TABLES}
    return (
        _perturbations(),
        *(tables.pop(name) for name in ("linear-main", "transfer-main")),
        _more_with_less(),
        _effect_of_dimension(),
        _effect_of_labels(),
        _distances("patient-distances", "Figure 6", "6.6", ("simclr", "cmsc"), (128,)),
        *tables.values(),
        _distances("patient-distances-by-dimension", "Figure 9", "G.1", ("cmsc",), _DIMS),
    )


def find_preset(name: str, presets: Iterable[Preset]) -> Preset:
    """Find the preset of this name. Raises UnknownName with its neighbours."""
    known = {preset.name: preset for preset in presets}
    if name not in known:
        raise UnknownName(f"No table or figure {name!r}.{neighbours(name, known)} `--list` shows all of them.")
    return known[name]


def _table(name: str, paper: PaperResults) -> Preset:
    """Make a table of the conditions that the paper printed. Random initialisation comes with every evaluation."""
    printed = [cell for cell in paper.cells if cell.table == name]
    conditions = tuple(
        Condition(
            method=cell.method,
            pretraining=cell.pretraining,
            downstream=cell.downstream,
            protocol=cell.protocol,
            leads=str(cell.leads),
            embedding_dim=cell.embedding_dim,
            label_fraction=cell.label_fraction,
            options=_decay(cell.tau_d),
            tau_d=cell.tau_d,
        )
        for cell in printed
        if cell.method != "random"
    )
    where, title = _TABLES[name]
    return Preset(name=name, printed_in=where, section=printed[0].section, title=title, conditions=conditions)


def _decay(tau_d: float | None) -> tuple[str, ...]:
    """Give the option of BYOL. 0.9 is its default: without an option, that pre-training is shared with other tables."""
    return () if tau_d in (None, 0.9) else (f"decay={tau_d:g}",)


# SimCLR compares "instances and their perturbed counterparts" (section 5.4): one copy is perturbed. Two copies under
# FlipY or FlipX, which draw nothing, would be equal.
_ONE_COPY = {"simclr": ("perturb=one",)}


def _perturbations() -> Preset:
    conditions = tuple(
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
    title = "The effect of perturbations on SimCLR and CMSC, linear evaluation, F = 0.5"
    return Preset(
        name="perturbations",
        printed_in="Figure 3",
        section="6.1",
        title=title,
        conditions=conditions,
        figure="perturbations",
    )


def _more_with_less() -> Preset:
    pairs = (("physionet2020", "cardiology"), ("chapman", "physionet2017"))
    conditions = tuple(
        Condition(
            method="cmsc",
            pretraining=pretraining,
            downstream=downstream,
            protocol="finetune",
            label_fraction=share,
            part="validation",
        )
        for pretraining, downstream in pairs
        for share in _SHARES
    )
    title = "Fine-tuning from CMSC with fewer labels beside random initialisation with all, validation patients"
    return Preset(
        name="more-with-less",
        printed_in="Figure 4",
        section="6.4",
        title=title,
        conditions=conditions,
        figure="less",
    )


def _effect_of_dimension() -> Preset:
    conditions = _to_cardiology((dim, 0.25) for dim in _DIMS)
    title = "The effect of the embedding dimension E, Chapman to Cardiology, F = 0.25"
    return Preset(
        name="effect-of-dimension",
        printed_in="Figure 5a",
        section="6.5",
        title=title,
        conditions=conditions,
        figure="dimension",
    )


def _effect_of_labels() -> Preset:
    conditions = _to_cardiology((64, share) for share in _SHARES)
    title = "The effect of the share F of labels, Chapman to Cardiology, E = 64"
    return Preset(
        name="effect-of-labels",
        printed_in="Figure 5b",
        section="6.5",
        title=title,
        conditions=conditions,
        figure="labels",
    )


def _to_cardiology(places: Iterable[tuple[int, float]]) -> tuple[Condition, ...]:
    def conditions() -> Iterator[Condition]:
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

    return tuple(conditions())


def _distances(name: str, where: str, section: str, methods: tuple[str, ...], dims: tuple[int, ...]) -> Preset:
    conditions = tuple(
        Condition(
            method=method,
            pretraining="physionet2020",
            downstream="physionet2020",
            protocol="linear",
            embedding_dim=dim,
        )
        for dim in dims
        for method in methods
    )
    title = "Distances of embeddings within and between validation patients"
    return Preset(
        name=name,
        printed_in=where,
        section=section,
        title=title,
        conditions=conditions,
        figure="distances",
        needs_scores=False,
    )
