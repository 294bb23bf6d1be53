"""Every method, from the command line to the report, with both encoders; and what a method keeps when it is resumed."""

from __future__ import annotations

import json

import pytest
import torch

from clocs_core.cli import main
from clocs_core.data.material import get_material
from clocs_core.data.store import fill_store, list_instances
from clocs_core.extend.catalogue import build_catalogue
from clocs_core.extend.host import installed_entry_points, load_plugins
from clocs_core.extend.plan import resolve
from clocs_core.train.assemble import build_learner, build_views
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.pretrain import pretrain

CATALOGUE, _ = build_catalogue(load_plugins(installed_entry_points()))
METHODS = sorted(item.offer.name for item in CATALOGUE.methods)
ENCODERS = {
    "cnn": (),
    "resnet1d": ("--encoder", "resnet1d", "-o", "widths=4,8", "-o", "blocks=1"),
}
SMALL = ("--dataset", "demo", "-o", "patients=20", "--epochs", "1", "--batch-size", "16", "-o", "resamples=10")
FOUR_SEGMENTS = ("-o", "frame_samples=1250")  # the simulated recordings have two frames of 2500 samples


@pytest.fixture(scope="module")
def data_root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_to_its_report_with_either_encoder(tmp_path, data_root, method, encoder):
    """A second encoder is what shows that the hook is one."""
    out = tmp_path / "run"
    more = FOUR_SEGMENTS if method == "cmsc-many" else ()
    where = ("--out", str(out), "--data-root", str(data_root), "--workers", "1", "--embedding-dim", "16")
    assert main(["run", "--plugin", method, *SMALL, *where, *ENCODERS[encoder], *more]) == 0
    report = json.loads((out / "report.json").read_text())
    assert report["method"] == method
    assert report["settings"]["run"]["encoder"] == encoder
    assert {score["init"] for score in report["scores"]} == {method, "random"}
    assert {one["init"] for one in report["patients"]} == {method, "random"}
    assert (out / "predictions.npz").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--plugin", "cmlc", "--leads", "II"), "Method 'cmlc' needs at least 2 channels, got II"),
        (("--plugin", "cmsmlc", "--leads", "V1"), "Method 'cmsmlc' needs at least 2 channels, got V1"),
        (("--plugin", "simclr", "-o", "perturbations=flip_x"), "and flip_x makes the same of both; add a perturbation"),
        (("--plugin", "byol", "-o", "perturbations="), "and nothing makes the same of both"),
        (("--plugin", "mt-ssl", "-o", "perturbations="), "'mt-ssl' is about perturbations, and the run has none"),
        (("--plugin", "simclr", "-o", "variant=relaesed"), "has no variant 'relaesed'. Did you mean 'released'?"),
    ],
)
def test_what_cannot_be_served_is_refused_in_a_sentence(tmp_path, capsys, wrong, message):
    """Before anything is read, and with nothing left behind."""
    out = tmp_path / "run"
    assert main(["run", *wrong, *SMALL, "--out", str(out), "--data-root", str(tmp_path / "data")]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


def test_the_released_variant_says_that_it_trains_the_last_pair_only(tmp_path, data_root, capsys):
    """On the screen and in the report: the published scores of the method may be of something else."""
    out = tmp_path / "run"
    asked = ("--plugin", "cmsmlc", "-o", "variant=released", "--out", str(out), "--data-root", str(data_root))
    with pytest.warns(UserWarning, match="one of 28 pairs"):
        assert main(["run", *asked, *SMALL]) == 0
    sentence = "variant=released trains on the last pair of views only"
    assert sentence in " ".join(capsys.readouterr().err.split())
    report = json.loads((out / "report.json").read_text())
    assert report["notes"][0].startswith(sentence)
    settings = report["settings"]
    assert settings["loss"]["formula"] == "released"
    assert settings["train"]["per_view"] is True
    assert settings["encoder"]["layer4_relu"] is False


def test_choices_can_be_made_on_validation_patients(tmp_path, data_root):
    """The test part then stays unseen, and the report says which patients were scored."""
    out = tmp_path / "run"
    asked = ("--plugin", "cmsc", "-o", "part=validation", "--out", str(out), "--data-root", str(data_root))
    assert main(["run", *asked, *SMALL]) == 0
    report = json.loads((out / "report.json").read_text())
    assert any("validation patients" in note for note in report["notes"])
    import numpy as np

    split = json.loads((out / "split.json").read_text())["patients"]
    with np.load(out / "predictions.npz", allow_pickle=False) as file:
        assert set(file["patient"].tolist()) <= set(split["validation"])
    page = (out / "report.html").read_text()
    assert "Validation patients only" in page
    assert "Test patients only" not in page


@pytest.mark.parametrize("method", ["byol", "mt-ssl", "supervised", "vicreg", "cmsmlc", "cmsc-rlm"])
def test_a_method_that_is_resumed_goes_on_exactly(tmp_path, data_root, method):
    """Targets, heads, their optimiser and the random numbers of views: all of it is where it was."""
    run = {"method": method, "dataset": "demo", "embedding_dim": 8, "device": "cpu"}
    tables = {"run": run, "data": {"data_root": str(data_root)}, "dataset": {"patients": 20}}
    plan = resolve(CATALOGUE, tables, ["batch_size=16", "epochs=4"])
    material = get_material(plan.recordings, plan.pretrain_framing, plan.evaluate_framing, 1, lambda *_: None)
    device = torch.device("cpu")
    store = fill_store(material.pretrain, material.labels, plan.task, material.channels, device)
    together = plan.needs.channels == "all"
    train, validation = (
        list_instances(
            material.pretrain,
            frozenset(material.split.patients(part)),
            material.channels,
            plan.needs.segments,
            together,
            device,
        )[0]
        for part in ("train", "validation")
    )

    def go_on(learner, epochs):
        training = Training(store, build_views(plan, "mV"), train, validation, plan.train, 0)
        made = pretrain(learner, training, plain_epoch, lambda: 0.0, lambda *_: None)
        for done in made:
            if done.epoch == epochs:
                return learner
        raise AssertionError("training ended early")

    whole = go_on(build_learner(plan, len(material.channels), device), 4)
    save_checkpoint(go_on(build_learner(plan, len(material.channels), device), 2), tmp_path / "c.safetensors")
    resumed = build_learner(plan, len(material.channels), device)
    load_checkpoint(resumed, tmp_path / "c.safetensors")
    go_on(resumed, 4)
    for part in ("encoders", "objective"):
        expected, found = getattr(whole, part).state_dict(), getattr(resumed, part).state_dict()
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[name], found[name]) for name in expected), part
    assert resumed.progress == whole.progress
