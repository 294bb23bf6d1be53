"""Cells are what they are made of: the same settings are the same cell, in every process and every order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.contracts.grids import Condition
from clocs_core.errors import SettingsError
from clocs_core.grids import cells
from clocs_core.grids.axes import Repeats, product, replace_datasets, replace_downstream, set_axis
from clocs_core.grids.cells import GridCell, Pretraining, digest, group_by_evaluation
from clocs_core.grids.choose import Axes, choose_presets
from clocs_core.grids.jobs import Place, evaluation_job, pretraining_job
from clocs_plugins.paper_tables.published import find_printed
from clocs_plugins.paper_tables.tables import paper_grids

RUN = Pretraining(method="cmsc", dataset="chapman", options=("decay=0.5",))
CELL = GridCell(pretraining=RUN, downstream="cardiology", protocol="finetune", label_fraction=0.25)
PLACE = Place(out=Path("/grid"), presets={"chapman": frozenset({"4", "12"}), "cardiology": frozenset()})


@pytest.mark.parametrize(
    "change",
    [
        {"method": "simclr"},
        {"dataset": "ptbxl"},
        {"leads": "12"},
        {"embedding_dim": 64},
        {"seed": 1},
        {"split_seed": 1},
        {"options": ()},
    ],
)
def test_every_setting_of_a_pretraining_tells_it_apart(change: dict[str, object]) -> None:
    """Two settings that shared a digest would share an encoder, and one of the two scores would be wrong."""
    other = attrs.evolve(RUN, **change)
    assert digest(other) != digest(RUN)
    assert other.name != RUN.name
    assert digest(attrs.evolve(CELL, pretraining=other)) != digest(CELL)


@pytest.mark.parametrize(
    "change", [{"downstream": "chapman"}, {"protocol": "linear"}, {"part": "validation"}, {"options": ("epochs=3",)}]
)
def test_every_setting_of_an_evaluation_tells_it_apart(change: dict[str, object]) -> None:
    """As for pre-trainings; and each has a folder of its own."""
    other = attrs.evolve(CELL, **change)
    assert digest(other.evaluation) != digest(CELL.evaluation)
    assert evaluation_job([other], PLACE).folder != evaluation_job([CELL], PLACE).folder


def test_a_new_version_shares_nothing_with_older_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings that mean another computation than before: an encoder, a score or a control of before would be wrong."""

    def places() -> set[str]:
        job = evaluation_job([CELL], PLACE)
        controls = job.fresh[job.fresh.index("--controls") + 1]
        return {digest(CELL), digest(RUN), str(pretraining_job(RUN, PLACE).folder), str(job.folder), controls}

    before = places()
    monkeypatch.setattr(cells, "VERSION", cells.VERSION + 1)
    monkeypatch.setattr("clocs_core.grids.jobs.VERSION", cells.VERSION)
    assert not places() & before


def test_a_digest_is_the_same_in_another_process() -> None:
    """Folders are found by other processes than made them; Python's own hash differs from one to the next."""
    code = (
        "from clocs_core.grids.cells import *; "
        "r = Pretraining(method='cmsc', dataset='chapman', options=('decay=0.5',)); "
        "print(digest(GridCell(pretraining=r, downstream='cardiology', protocol='finetune', label_fraction=0.25)))"
    )
    folder = Path(__file__).parents[2] / "benchmarks"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest(CELL)


@given(shares=st.lists(st.sampled_from([0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=8), seeds=st.integers(1, 3))
@settings(max_examples=30)
def test_cells_are_grouped_by_encoder_and_task_whatever_their_order(shares: list[float], seeds: int) -> None:
    """One process scores every F of an encoder: its frames are embedded once. None is lost and none is twice."""
    cells = [
        attrs.evolve(CELL, label_fraction=share, pretraining=attrs.evolve(RUN, seed=seed))
        for share in shares
        for seed in range(seeds)
    ]
    groups = group_by_evaluation(cells)
    assert len(groups) == seeds
    for group in groups.values():
        assert [cell.label_fraction for cell in group] == sorted(set(shares))
        assert len({cell.pretraining for cell in group}) == 1
    assert {cell for group in groups.values() for cell in group} == set(cells)


def test_the_untrained_encoder_belongs_to_no_method_and_no_pretraining_set() -> None:
    """It is taken once for each (downstream, protocol, F, E, leads, seed, split), whoever it was scored beside."""
    other = attrs.evolve(CELL, pretraining=attrs.evolve(RUN, method="byol", dataset="physionet2020", options=()))
    assert other.random == CELL.random
    assert attrs.evolve(CELL, pretraining=attrs.evolve(RUN, seed=1)).random != CELL.random
    assert attrs.evolve(CELL, pretraining=attrs.evolve(RUN, embedding_dim=64)).random != CELL.random


def test_a_share_of_no_labels_is_refused() -> None:
    """F is in (0, 1]."""
    for wrong in (0.0, 1.5):
        with pytest.raises(ValueError, match="label_fraction"):
            attrs.evolve(CELL, label_fraction=wrong)


def test_the_command_of_a_pretraining_says_all_that_its_digest_says() -> None:
    """And it never looks at test patients: cells do that."""
    job = pretraining_job(RUN, PLACE)
    said = " ".join(job.fresh)
    for words in (
        "run --plugin cmsc --dataset chapman --leads 4",
        "--embedding-dim 128 --seed 0 --split-seed 0",
        "-o part=validation -o decay=0.5",
        f"--out {job.folder}",
    ):
        assert words in said
    assert job.resume[:3] == ("run", "--resume", str(job.folder))


def test_a_data_set_with_one_lead_is_asked_for_no_four() -> None:
    """The paper evaluates on single-lead sets what was trained on four leads: `--leads 4` would be refused there."""
    command = evaluation_job([CELL, attrs.evolve(CELL, label_fraction=0.5)], PLACE).fresh
    assert "--leads" not in command
    assert command[command.index("--label-fraction") + 1] == "0.25,0.5"
    assert command[1] == str(pretraining_job(RUN, PLACE).folder)
    home = attrs.evolve(CELL, downstream="chapman", protocol="linear")
    assert "--leads 4" in " ".join(evaluation_job([home], PLACE).fresh)


def test_folders_of_data_sets_reach_the_commands_and_not_the_digest() -> None:
    """Where data lies differs from machine to machine; the cell is the same."""
    place = attrs.evolve(PLACE, roots={"chapman": "/elsewhere"}, data_root="/data")
    assert " ".join(("--root", "/elsewhere", "--data-root", "/data")) in " ".join(pretraining_job(RUN, place).fresh)
    assert "--root" not in evaluation_job([CELL], place).fresh
    assert pretraining_job(RUN, place).folder == pretraining_job(RUN, PLACE).folder


def test_all_evaluations_share_one_folder_of_controls() -> None:
    """Random initialisation is fine-tuned once, not once for every method and pre-training set."""
    other = attrs.evolve(CELL, pretraining=attrs.evolve(RUN, method="simclr", dataset="physionet2020"))
    commands = [evaluation_job([cell], PLACE).fresh for cell in (CELL, other)]
    where = {command[command.index("--controls") + 1] for command in commands}
    assert where == {str(PLACE.out / "controls" / str(cells.VERSION))}


CONDITION = Condition(method="cmsc", pretraining="chapman", downstream="chapman", protocol="linear")


def test_repetitions_are_every_seed_of_every_split() -> None:
    """Split by split, so that spreads over seeds and over splits can be told apart."""
    cells = Repeats(seeds=(0, 1), splits=(0, 1, 2)).cells(CONDITION)
    assert [(cell.pretraining.split_seed, cell.pretraining.seed) for cell in cells] == [
        (split, seed) for split in range(3) for seed in range(2)
    ]


def test_options_of_fine_tuning_are_not_given_to_linear_evaluation() -> None:
    """It trains no network, and refuses a number of epochs."""
    repeats = Repeats(evaluate_options=("patients=30",), finetune_options=("epochs=1",))
    (linear,) = repeats.cells(CONDITION)
    (tuned,) = repeats.cells(attrs.evolve(CONDITION, protocol="finetune"))
    assert linear.options == ("patients=30",)
    assert tuned.options == ("patients=30", "epochs=1")


@pytest.mark.parametrize("general", ["temperature=0.5", "loss.temperature=0.5"])
def test_an_option_of_all_runs_does_not_win_over_an_axis(general: str) -> None:
    """It stood last on the command line, so that two rows of other names were one run."""
    axis = attrs.evolve(CONDITION, options=("temperature=0.1",))
    assert Repeats(pretrain_options=(general, "epochs=3")).runs(axis)[0].options == ("temperature=0.1", "epochs=3")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"pretrain_options": ("seed=5",)}, "seed"),
        ({"pretrain_options": ("run.embedding_dim=32",)}, "embedding_dim"),
        ({"evaluate_options": ("part=validation",)}, "part"),
        ({"evaluate_options": ("label_fraction=0.5",)}, "label_fraction"),
        ({"finetune_options": ("evaluation.split_seed=1",)}, "split_seed"),
    ],
)
def test_what_a_grid_sets_for_each_row_is_no_option_of_all(options: dict[str, tuple[str, ...]], name: str) -> None:
    """Rows of seeds 0 and 1 were both of seed 5, and the page said "over seeds"."""
    with pytest.raises(SettingsError, match=rf"`{name}` is set for all (runs|evaluations) here, .*`--axis {name}="):
        Repeats(**options)  # type: ignore[arg-type]


def test_a_label_fraction_is_kept_as_it_is_written() -> None:
    """An evaluation at 0.333333 was not found as that of 0.3333333333."""
    third = attrs.evolve(CONDITION, label_fraction=1 / 3)
    assert third.label_fraction == 0.333333
    (cell,) = Repeats().cells(third)
    assert f"{cell.label_fraction:g}" == repr(cell.label_fraction)


def test_an_axis_is_replaced_and_each_condition_stands_once() -> None:
    """A table with one axis set is that table again with other values there."""
    both = (CONDITION, attrs.evolve(CONDITION, embedding_dim=64))
    found = set_axis(both, "embedding_dim", (32, 256))
    assert [one.embedding_dim for one in found] == [32, 256]
    assert {attrs.evolve(one, embedding_dim=128) for one in found} == {CONDITION}


def test_a_stand_in_keeps_the_papers_number_beside_it() -> None:
    """PTB-XL for Chapman is no repetition, but the two numbers are what a reader wants to see together."""
    (moved,) = replace_datasets((CONDITION,), ("chapman=ptbxl",))
    assert (moved.pretraining, moved.downstream) == ("ptbxl", "ptbxl")
    printed = find_printed(moved)
    assert printed is not None
    assert printed.printed == "0.896 ± 0.005"
    (plain,) = replace_datasets((CONDITION,), ("ptbxl",))
    assert find_printed(plain) is None


def test_fine_tuning_stays_away_from_the_set_it_was_trained_on() -> None:
    """The paper's transfer is to other data sets; a set that replaces all others may be one of the downstream sets."""
    tuned = attrs.evolve(CONDITION, protocol="finetune", downstream="physionet2017", printed_downstream="physionet2017")
    assert [one.downstream for one in replace_datasets((tuned,), ("ptbxl",))] == ["physionet2017"]
    assert replace_datasets((tuned,), ("physionet2017",)) == ()
    assert [one.downstream for one in replace_downstream((tuned,), ("a", "b"))] == ["a", "b"]


def test_a_grid_fine_tunes_elsewhere_and_is_evaluated_linearly_at_home() -> None:
    """As the paper does."""
    found = product(("cmsc",), ("ptbxl",), ("cardiology", "ptbxl"))
    assert [(one.downstream, one.protocol) for one in found] == [("cardiology", "finetune"), ("ptbxl", "linear")]
    assert [one.protocol for one in product(("cmsc",), ("ptbxl",), ())] == ["linear"]


def test_a_method_may_have_options_and_leads_may_be_named() -> None:
    """Each is a row of its own, and its encoder another one; within a value, "+" stands for a comma."""
    axes = Axes(methods=("byol", "byol:loss=cosine:perturbations=gaussian+sa_t"), datasets=("demo",), leads=("II+V2",))
    plain, other = axes.grid()
    assert (plain.row, plain.leads) == ("byol", "II,V2")
    assert other.options == ("loss=cosine", "perturbations=gaussian,sa_t")
    assert other.context == plain.context
    job = pretraining_job(Repeats().runs(other)[0], Place(out=Path("out")))
    for words in ("--plugin byol", "--leads II,V2", "-o loss=cosine", "-o perturbations=gaussian,sa_t"):
        assert words in " ".join(job.fresh)
    assert "--pictures false" in " ".join(job.fresh)
    drawn = pretraining_job(Repeats().runs(other)[0], Place(out=Path("out"), pictures=True))
    assert " ".join(drawn.fresh) == " ".join(job.fresh).replace("--pictures false", "--pictures true")
    offers = {offer.name: offer for offer in paper_grids()}
    (first, *_) = choose_presets(["linear-main"], Axes(methods=("cmsc:pairs=cross",)), offers.__getitem__)[0].conditions
    assert (first.method, first.options, find_printed(first)) == ("cmsc", ("pairs=cross",), None)
