"""The encoder of a run, opened again: the same weights, or a sentence that says what to do."""

import pytest
import torch
from begun_folders import begin_folder
from fake_plugins import no_offers, points
from fake_runs import make_run
from safetensors.torch import load_file

from clocs_core.artifacts.split import from_json
from clocs_core.errors import RunFolderError, UnknownName
from clocs_core.plan.pretrained import open_encoder
from clocs_core.plugins.session import open_session
from clocs_core.train.build import build_encoder

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs"), "--seed", "3")


@pytest.fixture(scope="module")
def catalogue():
    return open_session(points(), (), False).catalogue


def test_the_weights_and_their_description_come_back(run, catalogue):
    opened = open_encoder(run, catalogue)
    assert (opened.init, opened.dataset, opened.encoder.offer.name) == ("together", "tiny", "flat")
    assert (opened.inputs, opened.frame_samples, opened.embedding_dim) == (1, 50, 128)
    assert (opened.channels, opened.together, opened.normalise) == (("left", "right"), (), "min-max")
    assert opened.tables["run"]["seed"] == 3
    assert opened.split == from_json((run / "split.json").read_text())
    saved = load_file(run / "encoder.safetensors")
    built = build_encoder(opened, 50, 3, True, CPU).state_dict()
    assert built.keys() == saved.keys()
    assert all(torch.equal(built[name], saved[name]) for name in saved)


def test_the_file_by_itself_does_as_well_but_knows_nothing_of_patients(run, catalogue, tmp_path):
    alone = tmp_path / "encoder.safetensors"
    alone.write_bytes((run / "encoder.safetensors").read_bytes())
    opened = open_encoder(alone, catalogue)
    assert opened.split is None
    assert opened.sha256 == open_encoder(run, catalogue).sha256
    assert opened.split_hash == open_encoder(run, catalogue).split_hash


def test_untrained_weights_are_those_that_the_run_began_with(run, catalogue):
    """By the same seed and the same draws, or `random` would be another encoder here than in the run's report."""
    opened = open_encoder(run, catalogue)
    first, again, other = (build_encoder(opened, 50, seed, False, CPU).state_dict() for seed in (3, 3, 4))
    torch.manual_seed(0)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)
    assert not all(torch.equal(first[name], tensor) for name, tensor in opened.weights.items())


def test_of_several_encoders_the_first_is_evaluated(tmp_path, catalogue):
    """As in the run itself."""
    run = make_run(tmp_path, "--plugin", "two")
    saved = load_file(run / "encoder.safetensors")
    built = build_encoder(open_encoder(run, catalogue), 50, 0, True, CPU).state_dict()
    assert {name[0] for name in saved} == {"0", "1"}
    assert all(torch.equal(tensor, saved[f"0.{name}"]) for name, tensor in built.items())


# ----------------------------------------------------------------------------------------------------------- mistakes


def test_what_is_no_encoder_of_a_finished_run_is_refused(run, catalogue, tmp_path):
    """What such a file must say of itself is told where it is read; here, that nothing is evaluated without it."""
    with pytest.raises(RunFolderError, match=r"nowhere is not there"):
        open_encoder(tmp_path / "nowhere", catalogue)
    with pytest.raises(RunFolderError, match=r"is not a run folder"):
        open_encoder(tmp_path, catalogue)
    begin_folder(tmp_path, {"run": {"method": "m"}})
    with pytest.raises(RunFolderError, match=rf"not finished.*`pretrain\(\.\.\., out='{tmp_path}'\)`"):
        open_encoder(tmp_path, catalogue)
    with pytest.raises(RunFolderError, match=r"checkpoint\.safetensors"):
        open_encoder(run / "checkpoint.safetensors", catalogue)


def test_a_plugin_that_is_not_installed_is_named(run, tmp_path):
    without = open_session(points(clocs_encoders=no_offers, clocs_methods=no_offers), (), False).catalogue
    with pytest.raises(UnknownName, match=r"'flat' that is not installed here"):
        open_encoder(run, without)
