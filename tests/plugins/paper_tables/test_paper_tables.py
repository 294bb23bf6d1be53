"""Every table of the paper is a grid with exactly its cells; flags replace axes."""

from __future__ import annotations

import attrs
import pytest
from grid.smoke import smoke_presets, smoke_repeats

from clocs_core.errors import UnknownName
from clocs_core.grids.axes import Repeats
from clocs_core.grids.choose import Axes, choose_presets
from clocs_core.grids.presets import Preset, wanted_cells, wanted_runs
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import installed_entry_points, load_plugins
from clocs_plugins.paper_tables.printed import load_results
from clocs_plugins.paper_tables.tables import PERTURBATIONS, paper_grids

PAPER = load_results()
OFFERS = {offer.name: offer for offer in paper_grids()}
PRESETS = tuple(Preset.of(offer) for offer in OFFERS.values())


def find_preset(name: str) -> Preset:
    return Preset.of(OFFERS[name])


def test_every_table_of_scores_is_a_preset() -> None:
    """And every figure that is made of scores or distances."""
    tables = {cell.table for cell in PAPER.cells}
    figures = {"perturbations", "more-with-less", "effect-of-dimension", "effect-of-labels"}
    distances = {"patient-distances", "patient-distances-by-dimension"}
    assert {preset.name for preset in PRESETS} == tables | figures | distances | {"equal-exposure"}


@pytest.mark.parametrize("table", sorted({cell.table for cell in PAPER.cells}))
def test_a_table_has_exactly_the_conditions_that_were_printed(table: str) -> None:
    """Each finds its own number again; random initialisation is scored beside them and has no run of its own.

    BYOL has a second row, by our own rule of the epoch that is kept, which the paper does not have.
    """
    whole = find_preset(table)
    preset = attrs.evolve(whole, conditions=[one for one in whole.conditions if OFFERS[table].published(one)])
    ours = [one for one in whole.conditions if one not in preset.conditions]
    assert [one for one in preset.conditions if one.method == "byol"] == [
        attrs.evolve(one, options=(*one.options, "keep=loss")) for one in ours
    ]
    printed = [cell for cell in PAPER.cells if cell.table == table and cell.method != "random"]
    assert len(preset.conditions) == len(printed)
    for condition, cell in zip(preset.conditions, printed, strict=True):
        found = OFFERS[table].published(condition)
        assert found is not None
        assert (found.mean, found.sd) == (cell.mean, cell.sd)
    assert "random" not in {one.method for one in preset.conditions}


def test_the_default_decay_of_byol_is_trained_once_for_all_tables() -> None:
    """tau_d = 0.9 is what BYOL has everywhere else: its pre-training is shared, not repeated."""
    both = [find_preset(name) for name in ("byol-tau-linear", "linear-main")]
    runs = [{cell.pretraining for cell in wanted_cells([preset], Repeats())} for preset in both]
    assert {run.method for run in runs[0] & runs[1]} == {"byol"}
    decays = {("decay=0.5",), (), ("decay=0.99",)}
    assert {run.options for run in runs[0]} == decays | {(*decay, "keep=loss") for decay in decays}


def test_linear_evaluation_and_transfer_share_their_pretrainings() -> None:
    """70 and 80 pre-trainings at five seeds; together 80, since only supervised is not in both. BYOL has two rows."""
    presets = [find_preset(name) for name in ("linear-main", "transfer-main")]
    runs = {cell.pretraining for cell in wanted_cells(presets, Repeats(seeds=tuple(range(5))))}
    assert len(runs) == 8 * 2 * 5


def test_perturbations_are_five_alone_and_gaussian_before_each_of_the_others() -> None:
    """Section 6.1, for SimCLR and CMSC."""
    assert (
        *("gaussian", "flip_y", "flip_x", "sa_t", "sa_f"),
        *("gaussian,flip_y", "gaussian,flip_x", "gaussian,sa_t", "gaussian,sa_f"),
    ) == PERTURBATIONS
    preset = find_preset("perturbations")
    assert [one.method for one in preset.conditions] == ["simclr"] * 9 + ["cmsc"] * 9


def test_equal_exposure_has_every_method_both_ways() -> None:
    """As it stops by itself, and with as many steps as the others."""
    conditions = find_preset("equal-exposure").conditions
    own, equal = ([one.method for one in conditions if bool(one.exposure) == way] for way in (False, True))
    assert own == equal
    assert set(own) == {cell.method for cell in PAPER.cells} - {"random"}


def test_distances_need_pretrainings_and_no_cells() -> None:
    """They are in the report of the run itself."""
    preset = find_preset("patient-distances-by-dimension")
    assert wanted_cells([preset], Repeats()) == ()
    assert [run.embedding_dim for run in wanted_runs([preset], Repeats())] == [32, 64, 128, 256]


def test_a_misspelt_table_is_answered_with_its_neighbours() -> None:
    """Names are long; a typo should cost a second."""
    with pytest.raises(UnknownName, match=r"No grid 'linear-mian'\. Did you mean 'linear-main'"):
        choose_presets(["linear-mian"], Axes(), lambda name: CATALOGUE.grids.get(name).offer)


def test_flags_replace_axes_of_a_table() -> None:
    """Methods of one place stay together, since they are compared there."""
    axes = Axes(datasets=("ptbxl",), methods=("cmsc", "vicreg"), embedding_dims=(32, 64), label_fractions=(0.25,))
    (preset,) = choose_presets(["linear-main"], axes, OFFERS.__getitem__)
    assert [
        (one.pretraining, one.downstream, one.embedding_dim, one.label_fraction, one.method)
        for one in preset.conditions
    ] == [("ptbxl", "ptbxl", dim, 0.25, method) for dim in (32, 64) for method in ("cmsc", "vicreg")]


def test_a_grid_of_ones_own_has_every_combination() -> None:
    """Two methods, one set, two downstream sets, four E and four F."""
    axes = Axes(
        methods=("cmsc", "simclr"),
        datasets=("ptbxl",),
        downstream=("cardiology", "physionet2017"),
        embedding_dims=(32, 64, 128, 256),
        label_fractions=(0.25, 0.5, 0.75, 1.0),
    )
    (preset,) = choose_presets([], axes, OFFERS.__getitem__)
    cells = wanted_cells([preset], Repeats(seeds=tuple(range(5))))
    assert len(preset.conditions) == 2 * 2 * 4 * 4
    assert len(cells) == 2 * 2 * 4 * 4 * 5
    assert len({cell.pretraining for cell in cells}) == 2 * 4 * 5
    assert {cell.protocol for cell in cells} == {"finetune"}


def test_the_miniature_has_every_table_and_every_method_on_simulated_recordings_only() -> None:
    """It is what shows, in minutes, that each of them still runs."""
    small = smoke_presets()
    assert [preset.name for preset in small] == [preset.name for preset in PRESETS]
    assert all(preset.conditions for preset in small)
    assert {name for preset in small for name in preset.datasets} == {"demo"}
    methods = {one.method for preset in small for one in preset.conditions}
    assert methods == {"mt-ssl", "byol", "simclr", "cmsc", "cmlc", "cmsmlc", "supervised"}
    runs = {cell.pretraining for cell in wanted_cells(small, smoke_repeats())}
    assert len(runs) <= 21


@pytest.mark.parametrize("axis", ["method", "leads", "embedding_dim", "label_fraction", "options", "protocol", "part"])
def test_the_miniature_touches_every_value_of_every_axis(axis: str) -> None:
    """A value that is never run is promised by `--list` and may fail."""

    def values(presets: tuple[Preset, ...]) -> set[object]:
        found = {getattr(one, axis) for preset in presets for one in preset.conditions}
        return {one.removeprefix("perturbations=") for each in found for one in each} if axis == "options" else found

    assert values(smoke_presets()) == values(PRESETS)


CATALOGUE = build_catalogue(load_plugins(installed_entry_points()))[0]


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_every_cell_that_is_listed_can_be_planned(preset: Preset) -> None:
    """With the plugins that are installed: what `--list` counts is what `clocs run` and `clocs evaluate` accept."""
    for one in dict.fromkeys(
        (one.method, one.pretraining, one.embedding_dim, one.options) for one in preset.conditions
    ):
        method, dataset, dim, options = one
        plan = resolve(CATALOGUE, {"run": {"method": method, "dataset": dataset, "embedding_dim": dim}}, options)
        assert plan.method.name == method
        chosen = [option.partition("=")[2] for option in options if option.startswith("perturbations=")]
        assert not chosen or ",".join(one.offer.name for one in plan.perturbations) == chosen[0]


def test_simclr_perturbs_one_copy_in_the_figure_of_perturbations() -> None:
    """As the paper has it, and as two copies under FlipY or FlipX alone would be equal."""
    preset = find_preset("perturbations")
    assert {one.options[1:] for one in preset.conditions if one.method == "simclr"} == {("perturb=one",)}
    assert {one.options[1:] for one in preset.conditions if one.method == "cmsc"} == {()}


def test_the_part_of_a_figure_stays_unless_it_is_asked_for() -> None:
    """Figure 4 shows validation patients."""
    (preset,) = choose_presets(["more-with-less"], Axes(), OFFERS.__getitem__)
    assert {one.part for one in preset.conditions} == {"validation"}
    (preset,) = choose_presets(["more-with-less"], attrs.evolve(Axes(), part="test"), OFFERS.__getitem__)
    assert {one.part for one in preset.conditions} == {"test"}
