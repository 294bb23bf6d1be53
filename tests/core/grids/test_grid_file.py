"""A grid from a TOML file: every combination of its axes, or named cells; mistakes cost a second and one sentence."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from clocs_core.errors import ClocsError, SettingsError
from clocs_core.grids.grid_file import Asked, read_axes, read_grid_file, settle_grid
from clocs_core.grids.presets import wanted_cells
from clocs_core.plugins.session import installed_session

CATALOGUE = installed_session().catalogue

SMALL = """
title = "Two methods"

[axes]
method = ["cmsc", "byol:loss=cosine"]
dataset = "demo"
seed = [0, 1, 2]
embedding_dim = [32, 64]
label_fraction = [0.5, 1.0]
epochs = [1, 2]

[run]
patients = 12
"""


def asked(tmp_path: Path, text: str) -> Asked:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return read_grid_file(path)


def test_a_file_gives_every_combination_of_its_axes(tmp_path: Path) -> None:
    """Two methods, two E, two F, two numbers of epochs; three seeds repeat each."""
    grid = settle_grid(asked(tmp_path, SMALL), CATALOGUE)
    (preset,) = grid.presets
    assert (preset.name, preset.title) == ("mine", "Two methods")
    assert len(preset.conditions) == 2 * 2 * 2 * 2
    assert len(wanted_cells(grid.presets, grid.repeats)) == 3 * 2 * 2 * 2 * 2
    first = preset.conditions[0]
    assert (first.row, first.leads, first.protocol) == ("cmsc epochs=1", "", "linear")
    assert {one.options for one in preset.conditions if one.method == "byol"} == {
        ("loss=cosine", "epochs=1"),
        ("loss=cosine", "epochs=2"),
    }
    assert grid.repeats.runs(first)[0].options == ("epochs=1", "patients=12")


def test_named_cells_take_every_value_of_the_axes_that_they_leave_open(tmp_path: Path) -> None:
    """A row of the table has the name that its cell was given."""
    text = '[axes]\nmethod = "cmsc"\ndataset = "demo"\nembedding_dim = [32, 64]\n'
    text += '[[cells]]\nname = "short"\nepochs = 1\n[[cells]]\nname = "long"\nepochs = 9\nembedding_dim = 64\n'
    (preset,) = settle_grid(asked(tmp_path, text), CATALOGUE).presets
    assert [(one.row, one.embedding_dim, one.options) for one in preset.conditions] == [
        ("short", 32, ("epochs=1",)),
        ("short", 64, ("epochs=1",)),
        ("long", 64, ("epochs=9",)),
    ]


def test_a_file_may_begin_with_an_offered_grid(tmp_path: Path) -> None:
    """Its axes replace those of the table; a data set can stand in for another."""
    text = 'grid = "linear-main"\n[axes]\ndataset = ["chapman=demo", "physionet2020=demo"]\nmethod = ["cmsc"]\n'
    (preset,) = settle_grid(asked(tmp_path, text), CATALOGUE).presets
    assert {one.pretraining for one in preset.conditions} == {"demo"}
    assert {one.printed_pretraining for one in preset.conditions} == {"chapman", "physionet2020"}
    assert preset.offer == "linear-main"


def test_axes_of_a_command_line_are_those_of_a_file() -> None:
    """A plus stands for a comma within a value."""
    assert read_axes(["seed=0,1", "leads=II+V2"]) == {"seed": ("0", "1"), "leads": ("II,V2",)}
    typed = Asked(name="x", axes=read_axes(["method=cmsc", "dataset=demo", "label_fraction=0.25"]))
    (preset,) = settle_grid(typed, CATALOGUE).presets
    assert [one.label_fraction for one in preset.conditions] == [0.25]


def test_an_exposure_is_an_axis_and_makes_a_length_of_training_without_early_stopping(tmp_path: Path) -> None:
    """Methods are compared within one exposure; that of each method's own adds nothing to its command."""
    text = '[axes]\nmethod = ["cmsc", "simclr"]\ndataset = "demo"\n'
    text += 'exposure = ["own", "steps=20", "instances=90"]\n[run]\nkeep = "separation"\n'
    grid = settle_grid(asked(tmp_path, text), CATALOGUE)
    (preset,) = grid.presets
    assert [(one.exposure, one.method) for one in preset.conditions] == [
        (exposure, method) for exposure in ("", "steps=20", "instances=90") for method in ("cmsc", "simclr")
    ]
    options = [grid.repeats.runs(one)[0].options for one in preset.conditions[::2]]
    assert options == [("keep=separation",), ("total_steps=20", "keep=last"), ("total_instances=90", "keep=last")]
    assert len({one.context for one in preset.conditions}) == 3
    typed = attrs.evolve(
        asked(tmp_path, text), axes=read_axes(["method=cmsc", "dataset=demo", "exposure=own,steps=20"])
    )
    (again,) = settle_grid(typed, CATALOGUE).presets
    assert [one.exposure for one in again.conditions] == ["", "steps=20"]


@pytest.mark.parametrize("exposure", ["steps", "steps=0", "steps=x", "epochs=3", "much"])
def test_an_exposure_that_is_none_is_told_what_there_is(exposure: str) -> None:
    """Before anything is run."""
    wrong = Asked(name="x", axes={"method": ("cmsc",), "dataset": ("demo",), "exposure": (exposure,)})
    with pytest.raises(SettingsError, match=f"steps=10000 or instances=2500000, got '{exposure}'"):
        settle_grid(wrong, CATALOGUE)


def test_an_untrained_encoder_is_a_method_without_a_data_set() -> None:
    """It needs the name of an encoder instead."""
    axes = read_axes(["method=random", "downstream=demo", "protocol=linear"])
    with pytest.raises(ClocsError, match="name one with `encoder`"):
        settle_grid(Asked(name="x", axes=axes), CATALOGUE)
    (preset,) = settle_grid(Asked(name="x", axes=axes, encoder="cnn"), CATALOGUE).presets
    assert [(one.row, one.downstream) for one in preset.conditions] == [("random", "demo")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[axes]", "[axis]"), r"a grid has no 'axis'\. Did you mean 'axes'"),
        (('"cmsc"', '"cmsk"'), "Did you mean 'cmsc'"),
        (('"demo"', '"demmo"'), "Did you mean 'demo'"),
        (("epochs = [1, 2]", "epohcs = [1, 2]"), "cmsc on demo: .*epohcs"),
        (("epochs = [1, 2]", "epochs = [1.5]"), "epochs"),
        (("[32, 64]", '["x"]'), "'embedding_dim' takes whole numbers, got x"),
        (("[0.5, 1.0]", "[2.0]"), "at most 1, got 2"),
        (("[0, 1, 2]", "[0, 0]"), "'seed' has a value twice"),
        (("[axes]", '[axes]\nprotocol = "zero-shot"'), "No protocol 'zero-shot'"),
        (("[axes]", '[axes]\npart = "train"'), "validation or test, got train"),
        (('dataset = "demo"', ""), "needs an axis 'dataset'"),
        (("[axes]", "[axes"), "is not a TOML file"),
        (('"demo"', "{a = 1}"), "is a text, a number"),
        (("title", '[[cells]]\nname = "a"\n[[cells]]\nname = "a"\n[x]\ntitle'), "a grid has no 'x'"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    """Before anything is run."""
    with pytest.raises(ClocsError, match=message):
        settle_grid(asked(tmp_path, SMALL.replace(*change)), CATALOGUE)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ('[[cells]]\nname = "a"\n[[cells]]\nname = "a"\n', "two of .*cells.* have the name 'a'"),
        ("[[cells]]\nepochs = 1\n", "needs a `name`"),
        ('[[cells]]\nname = "a"\nseed = 1\n', "all cells share"),
    ],
)
def test_the_names_of_cells_are_their_own(tmp_path: Path, cells: str, message: str) -> None:
    """Two rows of one name could not be told apart."""
    with pytest.raises(ClocsError, match=message):
        settle_grid(asked(tmp_path, SMALL + cells), CATALOGUE)


def test_an_axis_must_suit_the_tables_that_are_kept() -> None:
    """The table of BYOL's decay cannot be made of another method, and is not asked for."""
    wanted = Asked(name="x", grids=("linear-main", "byol-tau-linear"), axes={"method": ("cmsc",)})
    (preset,) = settle_grid(wanted, CATALOGUE, ["linear-main"]).presets
    assert {one.method for one in preset.conditions} == {"cmsc"}
    with pytest.raises(ClocsError, match="decay"):
        settle_grid(wanted, CATALOGUE)


def test_a_grid_that_is_offered_has_its_own_cells() -> None:
    """Cells of a file beside it would be left out in silence."""
    both = attrs.evolve(Asked(name="x", grids=("linear-main",)), cells={"a": {}})
    with pytest.raises(ClocsError, match="leave out"):
        settle_grid(both, CATALOGUE)
