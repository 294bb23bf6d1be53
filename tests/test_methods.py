"""Every method, from the command line to the report, with both encoders; and what a method keeps when it is resumed."""

from __future__ import annotations

import json

import attrs
import pytest
import torch

from clocs_core.cli import main
from clocs_core.data.cohort import get_cohort
from clocs_core.data.store import fill_store, list_instances
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import installed_entry_points, load_plugins
from clocs_core.testing.assembly import options_of_part, parts_of, source_of
from clocs_core.train.build import build_learner, build_views, describe_signals
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.loop import train_epochs
from clocs_core.train.step import ContrastiveObjective, Encoding, loss_of

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

CATALOGUE, _ = build_catalogue(load_plugins(installed_entry_points()))
METHODS = sorted(item.offer.name for item in CATALOGUE.methods)
ENCODERS = {
    "own": (),
    "resnet1d": ("--encoder", "resnet1d", "-o", "widths=4,8", "-o", "blocks=1"),
}
SMALL = ("--dataset", "demo", "-o", "patients=20", "--epochs", "1", "--batch-size", "16", "-o", "resamples=10")
PREDICTING = ("stride=16", "layers=1", "state=4", "ahead=4", "normalise=min-max", "embedding_dim=16")
MASKING = ("layers=1", "heads=2", "patch=50", "normalise=min-max", "embedding_dim=16")
SMALLER = {
    "moco": ("blocks=1,1,1,1", "normalise=min-max", "embedding_dim=16"),
    "comet": ("blocks=1,1,1,1", "normalise=min-max", "embedding_dim=16"),
    "vicreg-many": ("blocks=1,1,1,1", "normalise=min-max", "embedding_dim=16", "frame_samples=500"),
    "cpc": PREDICTING,
    "rhythm-and-patient": PREDICTING,
    "jepa": MASKING,
    "mae": MASKING,
    "pclr": ("blocks=1,1,1,1", "normalise=min-max", "embedding_dim=16"),
    "3kg": ("blocks=1,1,1,1", "normalise=min-max", "embedding_dim=16", "channels=12"),
}  # smaller networks; no constant to measure first
ONE_CHANNEL = {
    "moco": ("blocks=1,1,1,1",),
    "pclr": ("blocks=1,1,1,1",),
    "vicreg-many": ("blocks=1,1,1,1",),
    "comet": ("blocks=1,1,1,1",),
    "rhythm-and-patient": ("stride=16", "layers=1", "state=4", "ahead=4"),
    "cpc": ("stride=16", "layers=1", "state=4", "ahead=4"),
    "jepa": ("layers=1", "heads=2"),
}  # methods of all leads, with what makes them small
FOUR_SEGMENTS = ("-o", "frame_samples=1250")  # the simulated recordings have two frames of 2500 samples


def slow(*values):
    """A case that takes seconds and stands beside a quicker one of its kind."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def data_root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.mark.parametrize(
    ("method", "encoder"),
    [
        # One method with a loss and one with an objective; the conformance kit takes a step of each of the others.
        (method, encoder) if encoder == "own" and method in ("cmsc", "byol") else slow(method, encoder)
        for method in METHODS
        for encoder in ENCODERS
        # They predict what follows, which resnet1d sees.
        if encoder != "resnet1d" or method not in ("cpc", "rhythm-and-patient")
    ],
)
def test_every_method_runs_to_its_report_with_either_encoder(tmp_path, data_root, method, encoder):
    """A second encoder is what shows that the hook is one."""
    out = tmp_path / "run"
    more = {"cmsc-many": FOUR_SEGMENTS, "vicreg-many": FOUR_SEGMENTS, "3kg": ("--leads", "12")}.get(method, ())
    where = ("--out", str(out), "--data-root", str(data_root), "--workers", "1", "--embedding-dim", "16")
    assert main(["run", "--plugin", method, *SMALL, *where, *ENCODERS[encoder], *more]) == 0
    report = json.loads((out / "report.json").read_text())
    assert report["method"] == method
    own = CATALOGUE.methods.get(method).offer.encoder
    assert report["settings"]["run"]["encoder"] == (own if encoder == "own" else encoder)
    assert {score["init"] for score in report["scores"]} == {method, "random"}
    assert {one["init"] for one in report["patients"]} == {method, "random"}
    assert (out / "predictions.npz").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--plugin", "cmlc", "--leads", "II"), "Method 'cmlc' needs at least 2 channels, got 1 (II)"),
        (("--plugin", "cmsmlc", "--leads", "V1"), "Method 'cmsmlc' needs at least 2 channels, got 1 (V1)"),
        (("--plugin", "simclr", "-o", "perturbations=flip_x"), "and flip_x makes the same of both; add a perturbation"),
        (("--plugin", "byol", "-o", "perturbations="), "and without perturbations both are the same"),
        (("--plugin", "simclr", "--perturbations", "none"), "and without perturbations both are the same"),
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


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("simclr", "-o", "sigma=0"), "view 2 equals view 1 in every instance"),
        slow(("simclr", "-o", "perturb=one", "-o", "perturbations=scaling"), "view 2 equals view 1 in every instance"),
        slow(("mt-ssl", "-o", "factor=1.0"), "view 3 equals view 1 in every instance"),
        slow(("simclr",), ""),
    ],
)
def test_views_that_turn_out_the_same_are_said_to_be(tmp_path, data_root, capsys, asked, said):
    """A strength of zero, or a change that the normalisation undoes, trains without complaint otherwise."""
    out = tmp_path / "run"
    assert main(["run", "--plugin", *asked, "--out", str(out), "--data-root", str(data_root), *SMALL]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    assert said in shown
    assert ("equals view 1" in shown) == bool(said)


@pytest.mark.filterwarnings("default::clocs_core.ClocsWarning")
@pytest.mark.parametrize(
    ("asked", "warned"),
    [
        (("cmsmlc", "-o", "variant=released"), True),
        slow(("cmlc", "-o", "formula=released"), True),
        slow(("cmlc", "-o", "variant=released", "--leads", "II,V1"), False),  # one pair: nothing is left out
        slow(("cmlc", "-o", "variant=released", "-o", "formula=paper"), False),
    ],
)
def test_training_of_the_last_pair_only_is_said_once_on_the_screen_and_in_the_report(
    tmp_path, data_root, capsys, asked, warned
):
    """The published scores of the method may be of something else: whoever repeats it must know."""
    out = tmp_path / "run"
    assert main(["run", "--plugin", *asked, "--out", str(out), "--data-root", str(data_root), *SMALL]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    report = json.loads((out / "report.json").read_text())
    assert shown.count("the other views get no gradient") == warned
    assert sum("the other views get no gradient" in note for note in report["notes"]) == warned
    if "variant=released" in asked:
        assert report["settings"]["train"]["per_view"] is True
        assert report["settings"]["encoder"]["layer4_relu"] is False


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


LONG = ("comet", "vicreg-many", "rhythm-and-patient", "mae", "cpc")  # seconds each


@pytest.mark.parametrize(
    "method",
    ["byol", "mt-ssl", "supervised", "vicreg", "cmsmlc", "cmsc-rlm"]
    + [slow(name) if name in LONG else name for name in SMALLER],
)
def test_a_method_that_is_resumed_goes_on_exactly(tmp_path, data_root, method):
    """Targets, heads, their optimiser and the random numbers of views: all of it is where it was."""
    run = {"method": method, "dataset": "demo", "embedding_dim": 8, "device": "cpu"}
    tables = {"run": run, "data": {"data_root": str(data_root)}, "dataset": {"patients": 20}}
    plan = resolve(CATALOGUE, tables, ["batch_size=16", "epochs=4", *SMALLER.get(method, ())])
    cohort = get_cohort(plan.recordings, plan.pretrain_framing, plan.evaluate_framing, 1, lambda *_: None)
    device = torch.device("cpu")
    store = fill_store(cohort.pretrain, cohort.labels, plan.task, cohort.channels, device)
    together = plan.needs.channels == "all"
    train, validation = (
        list_instances(
            cohort.pretrain,
            frozenset(cohort.split.patients(part)),
            cohort.channels,
            plan.needs.segments,
            together,
            device,
            plan.needs.recordings,
        )[0]
        for part in ("train", "validation")
    )

    signals = describe_signals(plan, cohort.pretrain, cohort.channels)

    def go_on(learner, epochs):
        training = Training(store, build_views(plan, signals), train, validation, plan.train, 0)
        made = train_epochs(learner, training, plain_epoch, lambda: 0.0, lambda *_: None)
        for done in made:
            if done.epoch == epochs:
                return learner
        raise AssertionError("training ended early")

    whole = go_on(build_learner(plan, signals, device), 4)
    save_checkpoint(go_on(build_learner(plan, signals, device), 2), tmp_path / "c.safetensors")
    resumed = build_learner(plan, signals, device)
    load_checkpoint(resumed, tmp_path / "c.safetensors")
    go_on(resumed, 4)
    for part in ("encoders", "objective"):
        expected, found = getattr(whole, part).state_dict(), getattr(resumed, part).state_dict()
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[name], found[name]) for name in expected), part
    assert resumed.progress == whole.progress


@pytest.mark.slow
@pytest.mark.parametrize("method", ONE_CHANNEL)
def test_a_method_that_reads_all_leads_reads_a_single_channel_too(tmp_path, method):
    """Own recordings of one channel, two for each patient."""
    import numpy as np

    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(40, 1, 1600)).astype(np.float32))
    rows = [f"{number // 2},{'ab'[number // 2 % 2]}" for number in range(40)]
    (tmp_path / "ids.csv").write_text("\n".join(["patient,label", *rows]) + "\n")
    table, out = str(tmp_path / "ids.csv"), tmp_path / "run"
    data = ("--dataset", "arrays", "--root", str(tmp_path / "x.npy"), "--sampling-rate", "125", "--patients", table)
    quick = (
        "--epochs",
        "1",
        "-o",
        "frame_samples=400",
        "-o",
        "resamples=10",
        "--embedding-dim",
        "16",
        "--workers",
        "1",
    )
    given = (*data, "--labels", table, *quick, "--out", str(out), "--data-root", str(tmp_path / "data"))
    assert main(["run", "--plugin", method, *given, *(f"-o{one}" for one in ONE_CHANNEL[method])]) == 0
    assert json.loads((out / "report.json").read_text())["method"] == method


@pytest.mark.parametrize("method", METHODS)
def test_the_gradient_reaches_every_view(method):
    """A view without one is a view that is encoded for nothing, as in the released code."""
    offer = CATALOGUE.methods.get(method).offer
    parts = parts_of(offer, CATALOGUE)
    source = source_of(offer, parts)
    views = source.views(500)
    signal = views.signal.detach().clone().requires_grad_()
    torch.manual_seed(0)
    encoder = parts["encoder"].build(parts["encoder"].options(), signal.shape[2], 500, 16)
    if "loss" in parts:
        objective = ContrastiveObjective(parts["loss"].build(options_of_part(offer, "loss", parts["loss"])))
    else:
        setup = attrs.evolve(source, signals=attrs.evolve(source.signals, samples=500)).setup([encoder], 16)
        objective = parts["objective"].build(options_of_part(offer, "objective", parts["objective"]), setup)
    given = Encoding([encoder], views.encoder_of_view), attrs.evolve(views, signal=signal)
    loss, _ = loss_of(objective, *given, torch.Generator().manual_seed(0))
    (found,) = torch.autograd.grad(loss, signal)
    assert (found.abs().sum((1, 2, 3)) > 0).all()
