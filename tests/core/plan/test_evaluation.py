"""What an evaluation is made of: which value wins, and which encoders and data sets do not go together."""

from pathlib import Path

import attrs
import pytest
from fake_plugins import points
from fake_runs import make_run

from clocs_core.errors import SettingsError, UnknownName
from clocs_core.plan.evaluation import resolve_evaluation
from clocs_core.plan.pretrained import open_encoder
from clocs_core.plugins.session import open_session
from clocs_core.settings.sections import TrainSettings


@pytest.fixture(scope="module")
def catalogue():
    return open_session(points(), (), False).catalogue


@pytest.fixture(scope="module")
def opened(tmp_path_factory, catalogue):
    made = ("--split-seed", "5", "--leads", "right", "-o", "people=14", "--seed", "3")
    return open_encoder(make_run(tmp_path_factory.mktemp("runs"), *made), catalogue)


@pytest.fixture(scope="module")
def wide(tmp_path_factory, catalogue):
    """An encoder that reads both channels at once."""
    return open_encoder(make_run(tmp_path_factory.mktemp("wide"), "--plugin", "leads"), catalogue)


def resolve(catalogue, opened, *assignments, **evaluation):
    return resolve_evaluation(catalogue, opened, {"evaluation": evaluation}, assignments)


# ------------------------------------------------------------------------------------------------------------- penalty


def test_c_is_1_a_number_or_auto_and_the_sentence_says_which(catalogue, opened):
    """The default is not written, so that evaluations of earlier versions keep the names of their folders."""
    plain, weak, chosen = (resolve(catalogue, opened, *words) for words in ((), ("C=10",), ("C=auto",)))
    assert (plain.scoring.C, weak.scoring.C, chosen.scoring.C) == (1, 10, "auto")
    assert "(L2, C = 1)" in plain.sentence()
    assert "(L2, C = 10)" in weak.sentence()
    assert "(L2, C by the scores of validation patients)" in chosen.sentence()
    assert "C" not in plain.tables()["evaluate"]
    assert chosen.tables()["evaluate"]["C"] == "auto"


def test_c_that_cannot_serve_is_refused(catalogue, opened):
    with pytest.raises(SettingsError, match="be positive, or auto"):
        resolve(catalogue, opened, "C=0")
    with pytest.raises(SettingsError, match=r"cannot be scored as well; give a number, such as `C=1`"):
        resolve(catalogue, opened, "C=auto", "part=validation")
    with pytest.raises(SettingsError, match="no L2 penalty, so C would do nothing"):
        resolve(catalogue, opened, "C=10", protocol="finetune")


# ---------------------------------------------------------------------------------------------------- which value wins


def test_on_its_own_data_set_an_encoder_is_evaluated_with_the_split_and_leads_of_its_run(catalogue, opened):
    """Another split by default would put patients that it was trained on into the test."""
    made = resolve(catalogue, opened)
    assert made.dataset.offer.name == "tiny"
    assert (made.data.split_seed, made.data.channels, made.dataset.options.people) == (5, ("right",), 14)
    assert made.settings.seed == 3
    assert made.inits == ("together", "random")


def test_on_another_data_set_that_data_set_decides(catalogue, opened):
    made = resolve(catalogue, opened, dataset="many", protocol="finetune")
    assert (made.data.split_seed, made.data.channels, made.dataset.options.people) == (0, ("left", "right"), 10)
    assert made.data.split == "64/16/20"
    trained = made.protocol.settings
    assert (trained.batch_size, trained.learning_rate, trained.epochs) == (8, 0.01, 3)


def test_assignments_win_over_everything(catalogue, opened):
    tables = {"evaluation": {"protocol": "finetune"}, "data": {"split_seed": 7}, "finetune": {"epochs": 9}}
    made = resolve_evaluation(catalogue, opened, tables, ["epochs=4", "data.split_seed=8", "part=validation"])
    assert (made.protocol.settings.epochs, made.data.split_seed, made.scoring.part) == (4, 8, "validation")
    trained = made.protocol.settings.for_training()
    assert trained == TrainSettings(epochs=4, batch_size=8, learning_rate=0.01, patience=15)


def test_a_data_root_that_is_given_now_wins_over_the_folder_that_the_run_was_made_with(catalogue, opened):
    """Else the recordings of before would be scored, under the name of those that were asked for."""
    old = attrs.evolve(opened, tables={**opened.tables, "data": {**opened.tables["data"], "root": "/old"}})
    assert resolve(catalogue, old).data.root == Path("/old")
    for tables, given in (({"data_root": "/new"}, ()), ({}, ("data_root=/new",)), ({}, ("data.data_root=/new",))):
        made = resolve_evaluation(catalogue, old, {"data": tables}, given).data
        assert (made.root, made.data_root, made.split_seed) == (None, Path("/new"), 5)
    made = resolve_evaluation(catalogue, old, {"data": {"data_root": "/new", "root": "/mine"}}).data
    assert (made.root, made.data_root) == (Path("/mine"), Path("/new"))


def test_an_untrained_encoder_has_its_own_options_and_only_itself_to_evaluate(catalogue):
    made = resolve(catalogue, None, "bias=false", dataset="many", encoder="flat", embedding_dim=6)
    assert made.inits == ("random",)
    assert (made.encoder.embedding_dim, made.encoder.encoder.options.bias) == (6, False)
    assert made.framing.frame_samples == 50


def test_the_name_of_an_evaluation_is_another_one_for_other_settings(catalogue, opened):
    """Two evaluations in one folder would be neither."""
    names = [
        resolve(catalogue, opened, *more, protocol=protocol).name
        for protocol, more in (
            ("linear", ()),
            ("finetune", ()),
            ("finetune", ("batch_size=9",)),
            ("linear", ("label_fraction=0.5",)),
            ("linear", ("fraction_of=patients",)),
            ("linear", ("seed=4",)),
        )
    ]
    assert len(set(names)) == len(names)
    assert names[0].startswith("tiny-linear-")
    assert resolve(catalogue, opened, protocol="linear").name == names[0]
    other = attrs.evolve(opened, sha256="0" * 64)  # the run was made anew in the same folder
    assert resolve(catalogue, other, protocol="linear").name != names[0]


def test_the_paper_s_batch_sizes_come_from_the_data_sets():
    """Appendix C: 16 for one of them, 256 for the others, 1e-4 everywhere."""
    catalogue = open_session(None, (), False).catalogue
    for name, size in (("cardiology", 16), ("chapman", 256), ("physionet2017", 256), ("physionet2020", 256)):
        made = resolve(catalogue, None, dataset=name, encoder="cnn", protocol="finetune").protocol.settings
        assert (made.batch_size, made.learning_rate, made.epochs, made.patience) == (size, 1e-4, 400, 15)


def test_the_protocol_is_spelled_out(catalogue, opened):
    text = resolve(catalogue, opened, "task=findings", protocol="finetune", fraction_of="patients").sentence()
    assert "a share F of the labelled training patients: binary cross-entropy, mean over classes, Adam at 0.01" in text
    assert "more than 15" in text
    assert "frozen, in eval mode" in resolve(catalogue, opened).sentence()


# -------------------------------------------------------------------------------------------------------------- frames


def test_frames_have_the_length_that_the_encoder_reads(catalogue, opened):
    assert resolve(catalogue, opened, dataset="many").framing.frame_samples == 50
    with pytest.raises(SettingsError, match="reads frames of 50 samples, got frame_samples = 60; leave it out"):
        resolve(catalogue, opened, "frame_samples=60")


def test_an_encoder_of_several_channels_gets_those_it_was_trained_on(catalogue, wide):
    assert wide.together == ("left", "right")
    assert resolve(catalogue, wide, dataset="many").data.channels == ("left", "right")


def test_other_channels_than_it_reads_are_refused_with_a_suggestion(catalogue, wide):
    """It knows them by their place: exchanged, they would be read as each other."""
    for channels in ("right,left", "left"):
        with pytest.raises(
            SettingsError, match=r"reads the channels left, right at once.*`channels=\['left', 'right'\]`"
        ):
            resolve(catalogue, wide, f"channels={channels}", dataset="many")


def test_a_data_set_without_its_channels_is_refused(catalogue, wide, opened):
    message = r"reads left, right at once, and data set 'strange' has no left and no right \(it has up, down\)"
    with pytest.raises(SettingsError, match=message):
        resolve(catalogue, wide, dataset="strange")
    assert resolve(catalogue, opened, dataset="strange").data.channels == ("up", "down")  # one at a time


# ------------------------------------------------------------------------------------------------------------ mistakes


def test_settings_of_training_make_no_sense_where_nothing_is_trained(catalogue, opened):
    with pytest.raises(SettingsError, match="Linear evaluation trains no network, so epochs would do nothing"):
        resolve(catalogue, opened, "epochs=3")
    with pytest.raises(SettingsError, match="so batch_size would do nothing"):
        resolve_evaluation(catalogue, opened, {"finetune": {"batch_size": 3}})


def test_an_encoder_of_a_method_with_the_name_of_a_control_is_refused(catalogue, opened):
    """Its file may come from an earlier version, or from somebody else."""
    with pytest.raises(SettingsError, match="A method cannot be named 'random'"):
        resolve(catalogue, attrs.evolve(opened, init="random"))


def test_the_encoder_of_a_run_cannot_be_another_one(catalogue, opened):
    with pytest.raises(SettingsError, match=r"The encoder comes with the run: 'flat' of dimension 128\. Leave out enc"):
        resolve(catalogue, opened, encoder="flat")
    with pytest.raises(SettingsError, match="no part of this run has an option 'bias'"):
        resolve(catalogue, opened, "bias=false")


def test_an_untrained_encoder_needs_a_name_and_a_data_set(catalogue):
    with pytest.raises(SettingsError, match="An evaluation needs a data set"):
        resolve(catalogue, None, encoder="flat")
    with pytest.raises(SettingsError, match="An untrained encoder needs its architecture"):
        resolve(catalogue, None, dataset="many")
    with pytest.raises(UnknownName, match="No encoder 'flta'"):
        resolve(catalogue, None, dataset="many", encoder="flta")
