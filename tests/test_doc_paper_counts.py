"""What pages say of the cells that the paper printed, and of the cells that its tables ask for, is counted again."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest
from paper_results import Place, paper_results

from clocs_core.grids.carry_out import find_work
from clocs_core.grids.definition import Grid
from clocs_core.grids.grid_file import read_grid_file, settle_grid
from clocs_core.grids.presets import wanted_cells
from clocs_core.plugins.session import installed_session
from clocs_plugins.paper_tables.printed import PrintedScore, load_results

ROOT = Path(__file__).parents[1]
Means = dict[str, float]


def words(page: str) -> str:
    """A page as one line."""
    return " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())


def cells(*tables: str) -> dict[tuple, Means]:
    """The paper's means by (pre-training, downstream, …), each by method."""
    found: dict[tuple, Means] = defaultdict(dict)
    for one in load_results().cells:
        if one.table in tables:
            place = one.pretraining, one.downstream, one.leads, one.embedding_dim, one.label_fraction
            found[place][one.method] = one.mean
    return found


# ------------------------------------------------------------------------------------------------------------ printed


def test_mt_ssl_is_below_random_initialisation_in_as_many_cells_of_table_2_as_is_said():
    found = cells("transfer-main")
    below = [place for place, means in found.items() if means["mt-ssl"] < means["random"]]
    ours = [place for place in found if place[1] in ("cardiology", "physionet2017")]
    (above,) = set(found) - set(below)
    assert above[:2] == ("physionet2020", "chapman")
    assert set(ours) <= set(below)
    text = words("results.md")
    assert f"in {len(below)} of the {len(found)} cells of table 2, among them all {len(ours)} on these two" in text
    mine, untrained = (found[above][name] for name in ("mt-ssl", "random"))
    assert f"From PhysioNet 2020 to Chapman its mean is above, {mine:.3f} against {untrained:.3f}." in text


def test_byol_has_the_lowest_means_of_table_1():
    """Not of tables 7 to 10: so the page names the table."""
    assert all(means["byol"] == min(means.values()) for means in cells("linear-main").values())
    longer = [means for means in cells("linear-4-leads").values() if "byol" in means]
    assert any(means["byol"] > min(means.values()) for means in longer)
    assert "In table 1 of the paper, too, it has the lowest means." in words("methods.md")


def test_cmsmlc_is_below_cmlc_in_as_many_cells_as_is_said():
    def both(dataset: str, *tables: str) -> list[Means]:
        return [means for place, means in cells(*tables).items() if place[0] == dataset and "cmsmlc" in means]

    text = words("released.md")
    ((one,), (other,)) = (both(name, "linear-main") for name in ("chapman", "physionet2020"))
    assert one["cmsmlc"] < one["cmlc"]
    assert other["cmsmlc"] > other["cmlc"]
    assert f"CMSMLC is below CMLC on Chapman, {one['cmsmlc']:.3f} against {one['cmlc']:.3f}, and above it on" in text
    assert f"PhysioNet 2020, {other['cmsmlc']:.3f} against {other['cmlc']:.3f}." in text
    many, few = (both(name, "linear-4-leads", "linear-12-leads") for name in ("chapman", "physionet2020"))
    below = [sum(means["cmsmlc"] < means["cmlc"] for means in side) for side in (many, few)]
    expected = f"below CMLC in {below[0]} of {len(many)} cells on Chapman, and in {below[1]} of {len(few)} on PhysioNet"
    assert f"In tables 7 to 14 it is {expected} 2020." in text


# ------------------------------------------------------------------------------------------------------ beside ours


def gaps() -> dict[tuple[PrintedScore, float], float]:
    """The paper's mean less ours, for every cell of the paper that stands beside ours in the table of the page."""
    found = {}
    for one in load_results().cells:
        twelve = one.table == "transfer-12-leads" and one.method == "cmsc"
        mt_ssl = one.table == "transfer-main" and one.method == "mt-ssl"  # which the longer tables leave out
        if not (twelve or mt_ssl or one.table == "transfer-4-leads"):
            continue
        name = "byol keep=loss" if one.method == "byol" else one.method  # the paper's rule
        place = Place(str(one.leads), one.downstream, f"{one.label_fraction:g}")
        if one.downstream == "physionet2017" and one.embedding_dim == 128 and one.label_fraction <= 0.5:
            found[one, one.label_fraction] = one.mean - fmean(paper_results().seeds(name, place))
    return found


def test_our_means_on_physionet_2017_are_below_the_papers_as_often_as_is_said():
    """And its largest gaps are those that are named."""
    found = gaps()
    quarter, half = ([gap for (_, share), gap in found.items() if share == one] for one in (0.25, 0.5))
    below = [sum(gap > 0 for gap in side) for side in (quarter, half)]
    assert below[0] == len(quarter)
    counts = f"in all {len(quarter)} at F = 0.25, and in {below[1]} of {len(half)} at F = 0.5."
    text = words("results.md")
    assert f"our means are below the paper's in {sum(below)} of {len(found)} cells: {counts}" in text
    largest: Means = {}
    for (one, share), gap in sorted(found.items(), key=lambda pair: -pair[1]):
        largest.setdefault(f"{one.method} at {share}", gap)
    (first, a), (second, b) = list(largest.items())[:2]
    assert [first, second] == ["byol at 0.25", "random at 0.25"]
    assert f"The largest gaps are {a:.3f} for BYOL and {b:.3f} for random initialisation, both at F = 0.25." in text


# ---------------------------------------------------------------------------------------------------------- asked for


def test_all_cells_are_made_as_is_said():
    """Tables of cells alone, not of pre-trainings."""
    rows = re.findall(r"\| ([\d,]+) \| ([\d,]+) cells \|", words("paper/index.md"))
    made, asked = (sum(int(cell.replace(",", "")) for cell in side) for side in zip(*rows, strict=True))
    assert made == asked
    assert f"all {asked:,} cells are made" in words("results.md")
    assert f"({asked:,} cells, five seeds each)" in words("../README.md")
    assert f"All {asked:,} cells are made." in words("../CHANGELOG.md")


@pytest.fixture(scope="module")
def paper() -> Grid:
    return settle_grid(read_grid_file(ROOT / "benchmarks" / "paper.toml"), installed_session().catalogue)


def test_the_cells_and_jobs_of_the_whole_paper_are_counted(paper: Grid, tmp_path: Path):
    asked = sum(len(wanted_cells([preset], paper.repeats)) for preset in paper.presets)
    different, jobs = len(wanted_cells(paper.presets, paper.repeats)), len(find_work(paper, tmp_path))
    text = words("benchmarks-grid.md")
    assert f"The tables ask for {asked:,} cells." in text
    assert f"{different:,} are different, and {jobs:,} jobs make them." in text


def test_the_cells_that_a_stand_in_makes_no_transfer_are_those_that_are_named(paper: Grid):
    """Fine-tuning on the set of the pre-training; the table of the page of results has none of these."""
    found = {
        (one.printed_pretraining, one.printed_downstream)
        for preset in paper.presets
        for one in preset.conditions
        if one.protocol == "finetune" and one.pretraining == one.downstream
    }
    assert found == {("chapman", "physionet2020"), ("physionet2020", "chapman")}
    text = words("benchmarks-grid.md")
    assert "The tables of transfer have cells from Chapman to PhysioNet 2020 and back." in text
    assert "these cells fine-tune on the recordings of the pre-training itself" in text
    lines = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if " ± " in line]
    tuned = {row[0] for row in rows if len(row) == 7 and row[1] in ("0.25", "0.5")}
    assert tuned == {"cardiology", "physionet2017"}
    assert "It is left out here: PTB-XL stands in for both" in words("results.md")
