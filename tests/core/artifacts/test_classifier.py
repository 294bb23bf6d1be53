"""Classifier files: the one that is meant is found, it is what it was, and what cannot be used is refused."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from fake_plugins import points
from fake_runs import evaluate_run, rewritten, tune_run

from clocs_core.artifacts.classifier import choose_classifier, load_classifier, read_classifier_card
from clocs_core.artifacts.predictions import read_predictions
from clocs_core.artifacts.tensors import save_tensors
from clocs_core.errors import RunFolderError, SettingsError, UnknownName
from clocs_core.plugins.session import open_session

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def session():
    return open_session(points(), (), False)


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    return tune_run(tmp_path_factory.mktemp("runs"), "--label-fraction", "0.5,1")


@pytest.fixture
def file(evaluation, tmp_path):
    """A copy of a classifier, to be spoiled."""
    return shutil.copy(evaluation / "classifiers" / "together-1.safetensors", tmp_path / "c.safetensors")


# ------------------------------------------------------------------------------------------------------- which is meant


@pytest.mark.parametrize(
    ("init", "fraction", "name"),
    [
        (None, None, "together-1"),
        (None, 0.5, "together-0.5"),
        ("random", None, "random-1"),
        ("random", 0.5, "random-0.5"),
    ],
)
def test_of_several_the_pre_trained_one_with_the_most_labels_is_meant_unless_another_is_asked_for(
    evaluation, init, fraction, name
):
    """Of the evaluation and of the run that it lies in alike."""
    expected = evaluation / "classifiers" / f"{name}.safetensors"
    for place in (evaluation, evaluation.parent.parent):
        assert choose_classifier(place, init, fraction) == expected
    assert choose_classifier(expected) == expected


def test_a_file_is_one_classifier_and_none_other_can_be_asked_for(evaluation):
    """Whoever says `init='random'` beside the file of another would be given that other, and not told."""
    file = evaluation / "classifiers" / "together-1.safetensors"
    with pytest.raises(SettingsError, match=r"is one classifier; leave out `init='random'` `label_fraction=0\.5`, or"):
        choose_classifier(file, "random", 0.5)


def test_a_classifier_that_is_not_there_is_answered_with_those_that_are(evaluation, tmp_path):
    message = (
        r"no classifier with `init='other'` `label_fraction=0\.3`\. It has: `init='random'` `label_fraction=0\.5`; "
    )
    with pytest.raises(SettingsError, match=message):
        choose_classifier(evaluation, "other", 0.3)
    with pytest.raises(RunFolderError, match="nowhere is not there"):
        choose_classifier(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match="is no run and no evaluation: `evaluate\\("):
        choose_classifier(tmp_path)
    (tmp_path / "settings.toml").touch()
    with pytest.raises(RunFolderError, match=r"has no fine-tuned classifier: .* the linear protocol keeps none"):
        choose_classifier(tmp_path)


def test_the_folder_of_several_seeds_says_what_it_holds(tmp_path):
    (tmp_path / "seed3").mkdir()
    (tmp_path / "seeds.toml").touch()
    with pytest.raises(RunFolderError, match=r"holds runs of several seeds; give the folder of one .*seed3\."):
        choose_classifier(tmp_path)


def test_an_untrained_one_is_meant_where_there_is_no_other(evaluation, tmp_path):
    (tmp_path / "classifiers").mkdir()
    shutil.copy(evaluation / "classifiers" / "random-0.5.safetensors", tmp_path / "classifiers")
    assert choose_classifier(tmp_path).name == "random-0.5.safetensors"


def test_of_two_evaluations_of_a_run_neither_is_taken_in_silence(tmp_path):
    """They are of other data sets, or of other settings: nothing makes one of them the right one."""
    first = tune_run(tmp_path)
    second = evaluate_run(tmp_path / "run", "--protocol", "finetune", "--epochs", "1", "--label-fraction", "0.5")
    with pytest.raises(SettingsError, match="2 evaluations with such a classifier; give one of them: ") as raised:
        choose_classifier(tmp_path / "run")
    assert str(first) in str(raised.value)
    assert str(second) in str(raised.value)
    assert choose_classifier(tmp_path / "run", None, 0.5).parent.parent == second


# --------------------------------------------------------------------------------------------------------- opened again


def test_a_classifier_is_what_it_was(evaluation, session):
    """The network that is opened predicts what the evaluation kept of its test frames, to the last bit."""
    from fake_offers import TinyOptions, tiny_load

    from clocs_core import Entry
    from clocs_core.train.normalise import min_max

    loaded = load_classifier(choose_classifier(evaluation), session.catalogue, CPU)
    assert not loaded.network.training
    kept = read_predictions(evaluation / "predictions.npz")["finetune", "together", 1.0].probability
    with np.load(evaluation / "predictions.npz") as file:
        name = str(file["record"][0])
    samples = tiny_load(Entry(name, name.partition("-")[0], 0), TinyOptions()).samples.astype(np.float32)
    signal = torch.from_numpy(samples[0, :50]).view(1, 1, 50)  # the first row: channel left of the first frame
    with torch.inference_mode():
        found = loaded.network(min_max(signal)).double().softmax(1)
    assert torch.allclose(found, torch.from_numpy(kept[:1]), rtol=1e-5)


def test_the_card_says_what_the_classifier_needs_and_what_its_answers_mean(evaluation):
    card = read_classifier_card(choose_classifier(evaluation))
    assert (card.init, card.fraction, card.dataset, card.encoder) == ("together", 1.0, "many", "flat")
    assert (card.channels, card.input_channels, card.frame_samples) == (("left", "right"), 1, 50)
    assert (card.unit, card.normalise, card.framing.frame_samples) == ("mV", "min-max", 50)
    assert (card.task.name, card.task.classes, card.task.kind) == ("parity", ("even", "odd"), "one_of")
    assert card.settings["data"]["split_seed"] == 0


def test_opening_a_classifier_shifts_nobody_elses_draws(evaluation, session):
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    load_classifier(choose_classifier(evaluation), session.catalogue, CPU)
    assert torch.equal(torch.rand(4), expected)


def test_a_missing_plugin_is_named(file):
    bare = open_session([], (), False).catalogue
    with pytest.raises(
        UnknownName, match=r"holds an encoder 'flat' that is not installed here; .*fakes \(fakes 1\.0\)"
    ):
        load_classifier(file, bare, CPU)


def test_a_damaged_or_foreign_file_is_refused(evaluation, file, session, tmp_path):
    """Half a download, an encoder, something else: never a traceback."""
    with pytest.raises(RunFolderError, match="is no classifier: it holds an encoder"):
        read_classifier_card(evaluation.parent.parent / "encoder.safetensors")
    whole = file.read_bytes()
    file.write_bytes(whole[:300])
    with pytest.raises(RunFolderError, match="Cannot read"):
        load_classifier(file, session.catalogue, CPU)
    save_tensors({"x": torch.zeros(1)}, {}, file)
    with pytest.raises(RunFolderError, match="holds no classifier of this version of clocs: it says nothing of itself"):
        read_classifier_card(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors, about: about.update(schema=99), "schema 99, this one reads 1"),
        (lambda tensors, about: about.pop("task"), "is damaged: it has no 'task'"),
        (lambda tensors, about: about.update(signal=3), "is damaged: signal is 3, expected a table"),
        (lambda tensors, about: about["encoder"]["options"].update(colour="red"), "cannot be built by the plugin"),
        (lambda tensors, about: about["encoder"].update(embedding_dim=9), "is damaged: head is .*'features': 128"),
        (lambda tensors, about: about["task"].update(classes=["a", "b", "c"]), "is damaged: head is .*'classes': 2"),
        (lambda tensors, about: tensors.pop("head.bias"), "do not fit .* Missing key"),
        (lambda tensors, about: tensors.pop("head.weight"), "declares a head of shape .*, and the file holds none"),
        (lambda tensors, about: tensors.update({"head.weight": torch.zeros(2, 9)}), "and the file holds .2, 9"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_wrong(file, session, change, message):
    """Weights that are left at random would give probabilities that look like any others."""
    with pytest.raises(RunFolderError, match=message):
        load_classifier(rewritten(file, change), session.catalogue, CPU)
