"""The encoder file: what is written is read back, and what cannot be used is refused with a reason."""

from __future__ import annotations

import json
import math

import attrs
import pytest
import torch
from begun_folders import begin_folder
from fake_encoders import ALL_AT_ONCE, CPU, installed, plan_of, write_encoder
from safetensors import safe_open
from safetensors.torch import save_file

from clocs_core.artifacts import tensors as files_of_tensors
from clocs_core.artifacts.card import encoder_card
from clocs_core.artifacts.encoder import FILE, add_scores, find_encoder, load_encoder
from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.artifacts.tensors import read_description, read_tensors, refuse_other_schema, save_tensors
from clocs_core.contracts.offers import Encoder, Needs
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError, UnknownName
from clocs_core.plugins.catalogue import Shelf
from clocs_core.plugins.session import open_session
from clocs_core.settings.toml_file import SCHEMA


@pytest.fixture(scope="module")
def catalogue():
    return installed()


def read_card(path):
    """The card of an encoder file, without its weights."""
    file = find_encoder(path)
    description = read_description(file)
    refuse_other_schema(description, file, "encoder")
    return encoder_card(description, file)


def rewritten(path, change):
    """The same file with its description changed."""
    tensors, about = read_tensors(path)
    change(tensors, about)
    save_tensors(tensors, about, path)
    return path


@pytest.mark.parametrize("needs", [None, ALL_AT_ONCE, Needs(segments=2, encoders=2)])
def test_an_encoder_is_what_it_was(tmp_path, catalogue, needs):
    """One encoder, one of several channels, several encoders: the same numbers come out, to the last bit."""
    plan = plan_of(catalogue, needs)
    encoders, path = write_encoder(tmp_path, plan)
    loaded = load_encoder(path, catalogue, CPU)
    channels = 4 if needs is ALL_AT_ONCE else 1
    signal = torch.randn(3, channels, 2500, generator=torch.Generator().manual_seed(0))
    assert len(loaded.modules) == plan.needs.encoders
    for before, after in zip(encoders.eval(), loaded.modules, strict=True):
        assert not after.training
        assert torch.equal(before(signal), after(signal))
    assert loaded.encoder is loaded.modules[0]


def test_the_card_says_what_the_encoder_needs_and_where_it_comes_from(tmp_path, catalogue):
    plan = plan_of(catalogue, channels=["V2", "II"])
    _, path = write_encoder(tmp_path, plan, versions={"clocs": "0.1", "plugin cnn": "clocs 0.1"})
    card = read_card(path)
    assert card == load_encoder(path, catalogue, CPU).card
    assert (card.method, card.dataset, card.encoder, card.embedding_dim, card.count) == ("cmsc", "demo", "cnn", 8, 1)
    assert (card.channels, card.input_channels, card.frame_samples) == (("V2", "II"), 1, 2500)
    assert (card.unit, card.modality, card.normalise) == ("mV", "ecg", "min-max")
    assert (card.task, card.pretrain_framing, card.framing) == (
        plan.task,
        plan.pretrain_framing,
        plan.evaluate_framing,
    )
    assert card.settings == plan.tables()
    assert card.versions == {"clocs": "0.1", "plugin cnn": "clocs 0.1"}
    assert card.licence == plan.dataset.offer.licence
    assert (card.frame_rate, card.says_rate) == (500.0, True)


def test_the_card_names_the_channels_of_the_first_encoder_and_an_older_file_means_all(tmp_path, catalogue):
    """Whoever opens the file gets that encoder; files from before there was such a line had all channels read."""
    needs = Needs(channels="all", least_channels=2, encoders=2, first_channels=(1, None))
    _, path = write_encoder(tmp_path, plan_of(catalogue, needs, channels=["V2", "II"]))
    card = read_card(path)
    assert (card.channels, card.others, card.run_channels) == (("II",), ("V2",), ("V2", "II"))
    card = read_card(rewritten(path, lambda tensors, about: about["signal"].pop("first_channels")))
    assert (card.channels, card.others) == (("V2", "II"), ())


def test_scores_are_added_when_they_are_known(tmp_path, catalogue):
    """The weights are written before they are scored. JSON has no NaN, so a score that is none is null there."""
    encoders, path = write_encoder(tmp_path, plan_of(catalogue))
    assert read_card(path).scores == ()
    scores = [Score("linear", "cmsc", "demo", 1.0, "auroc", "frame", 0.75, 0.5, 1.0)]
    scores += [Score("prior", "random", "demo", 1.0, "auroc", "frame", float("nan"), 0.5, 0.5)]
    add_scores(path, scores)
    loaded = load_encoder(path, catalogue, CPU)
    assert loaded.card.scores[0] == scores[0]
    assert math.isnan(loaded.card.scores[1].value)
    held = json.loads(safe_open(path, framework="pt").metadata()["clocs"], parse_constant=pytest.fail)
    assert held["scores"][1]["value"] is None
    for name, tensor in encoders.state_dict().items():
        assert torch.equal(loaded.modules.state_dict()[name], tensor)
    add_scores(path, scores[:1])
    assert len(read_card(path).scores) == 1


def test_weights_and_description_are_of_one_reading(tmp_path, catalogue, monkeypatch):
    """A file that is written anew between two readings would give the weights of one run and the card of another."""
    _, path = write_encoder(tmp_path, plan_of(catalogue))
    opened = []

    def watched(file, *more):
        opened.append(file)
        return open(file, *more)

    monkeypatch.setattr(files_of_tensors, "open", watched, raising=False)
    monkeypatch.setattr(files_of_tensors, "safe_open", watched)
    load_encoder(path, catalogue, CPU)
    assert opened == [path]


@pytest.mark.parametrize("text", ["[1]", '"schema"', "null", "3"])
def test_a_description_that_is_no_object_is_refused(tmp_path, text):
    path = tmp_path / FILE
    save_file({"x": torch.zeros(1)}, path, {"clocs": text})
    with pytest.raises(RunFolderError, match="holds no encoder of this version of clocs: it says nothing of itself"):
        read_card(path)


def test_a_run_folder_serves_as_well_as_its_file(tmp_path, catalogue):
    """The two modules that name the file agree; neither can import the other."""
    _, path = write_encoder(tmp_path, plan_of(catalogue))
    assert RunFolder(tmp_path).encoder == tmp_path / FILE == path
    assert load_encoder(tmp_path, catalogue, CPU).path == path


def test_opening_an_encoder_shifts_nobody_elses_draws(tmp_path, catalogue):
    """Building it draws weights that are overwritten at once; a seed that was set before must hold."""
    write_encoder(tmp_path, plan_of(catalogue))
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    load_encoder(tmp_path, catalogue, CPU)
    assert torch.equal(torch.rand(4), expected)


def test_a_missing_plugin_is_named(tmp_path, catalogue):
    """With its distribution, so that somebody else knows what to install."""
    had = {"clocs": "0.1", "plugin cnn": "clocs-net 2.3", "plugin demo": "clocs 0.1"}
    _, path = write_encoder(tmp_path, plan_of(catalogue), versions=had)
    bare = open_session(None, ("cnn",), False).catalogue
    with pytest.raises(UnknownName) as raised:
        load_encoder(path, bare, CPU)
    assert str(raised.value).startswith(
        f"{path} holds an encoder 'cnn' that is not installed here; of the plugins that it was made with, these offer "
        "nothing here: cnn (clocs-net 2.3). No encoder 'cnn'. "
    )
    write_encoder(tmp_path, plan_of(catalogue), versions={"clocs": "0.1"})
    with pytest.raises(UnknownName, match=r"not installed here\. No encoder 'cnn'\."):
        load_encoder(path, attrs.evolve(catalogue, encoders=Shelf(Encoder, ())), CPU)


def test_what_is_not_there_or_not_finished_is_refused(tmp_path, catalogue):
    with pytest.raises(RunFolderError, match=r"nothing is not there\. Give a folder that `pretrain` made"):
        load_encoder(tmp_path / "nothing", catalogue, CPU)
    with pytest.raises(RunFolderError, match=r"is not a run folder: it has no encoder\.safetensors"):
        load_encoder(tmp_path, catalogue, CPU)
    begin_folder(tmp_path, {"run": {"method": "m"}})
    with pytest.raises(RunFolderError, match=r"the run is not finished\. Go on with it: `pretrain\(\.\.\., out="):
        load_encoder(tmp_path, catalogue, CPU)
    (tmp_path / "settings.toml").write_text("[evaluation]\n", encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"is an evaluation, not a run: it has no encoder\."):
        load_encoder(tmp_path, catalogue, CPU)


def test_a_damaged_or_foreign_file_is_refused(tmp_path, catalogue):
    """Half a download, a checkpoint of something else: never a traceback."""
    _, path = write_encoder(tmp_path, plan_of(catalogue))
    whole = path.read_bytes()
    path.write_bytes(whole[:500])
    for read in (lambda: load_encoder(path, catalogue, CPU), lambda: read_card(path)):
        with pytest.raises(RunFolderError, match="Cannot read"):
            read()
    save_tensors({"x": torch.zeros(1)}, {}, path)
    with pytest.raises(RunFolderError, match="holds no encoder of this version of clocs: it says nothing of itself"):
        read_card(path)
    others = {"a checkpoint of training": {"progress": {}}, "a classifier": {"encoder": {}, "head": {}}}
    for held, about in {**others, "something else": {}}.items():
        save_tensors({"x": torch.zeros(1)}, {"schema": SCHEMA, **about}, path)
        with pytest.raises(
            RunFolderError, match=f"is no encoder: it holds {held}. Give a folder that `pretrain` made, or its "
        ):
            load_encoder(path, catalogue, CPU)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors, about: about.update(schema=99), "schema 99, this one reads 1"),
        (lambda tensors, about: about.pop("task"), "The description in .* is damaged: it has no 'task'"),
        (lambda tensors, about: about["encoder"].pop("count"), "is damaged: it has no 'count'"),
        (lambda tensors, about: about.update(signal=3), "is damaged: signal is 3, expected a table"),
        (
            lambda tensors, about: about["encoder"]["options"].update(colour="red"),
            "cannot be built by the plugin that is installed: \\[encoder\\] has no option 'colour'.* \\(clocs 0\\)",
        ),
        (lambda tensors, about: about["encoder"].update(frame_samples=20), "cannot be built"),
        (lambda tensors, about: about["encoder"].update(embedding_dim=9), "do not fit .* size mismatch"),
        (lambda tensors, about: tensors.pop("linear.bias"), "do not fit .* Missing key"),
        (lambda tensors, about: tensors.update(more=torch.zeros(1)), "do not fit .* Unexpected key"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_wrong(tmp_path, catalogue, change, message):
    """Weights that are left at random, or not used at all, would give numbers that look like any others."""
    _, path = write_encoder(tmp_path, plan_of(catalogue))
    with pytest.raises(RunFolderError, match=message):
        load_encoder(rewritten(path, change), catalogue, CPU)
