"""What trains is built from a plan; a network that no memory holds is refused with a sentence."""

from __future__ import annotations

import re

import attrs
import pytest
import torch
from fake_encoders import installed, plan_of
from fake_frames import fake_prepared
from torch import nn

from clocs_core import Objective, Perturbation, Setup, SignalFacts
from clocs_core.errors import PluginError, SettingsError, Unavailable
from clocs_core.plan.data import Chosen
from clocs_core.plan.pretrained import Pretrained
from clocs_core.plan.pretraining import resolve
from clocs_core.settings.options import structure
from clocs_core.testing.threads import ThreadWire, new_meeting
from clocs_core.train import build
from clocs_core.train.ranks import Group

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("options", "dim", "samples"),
    [({}, 10**9, 2500), ({}, 2**62, 2500), ({}, 128, 10**15), ({"widths": [10**7, 10**7]}, 128, 2500)],
)
def test_a_network_larger_than_the_memory_is_refused_before_it_is_filled(options, dim, samples):
    offer = installed().encoders.get("cnn").offer
    with pytest.raises(SettingsError, match=r"'cnn' cannot be built: .* more than the \d+ GB of this machine"):
        build.draw_encoders(Chosen(offer, structure(offer.options, options, "encoder")), 1, samples, dim, 0)


def test_a_fault_of_a_plugin_is_not_taken_for_a_lack_of_memory():
    class Broken:
        name = "broken"

        def build(self, *_given):
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        build.draw_encoders(Chosen(Broken(), None), 1, 10, 2, 0)


@pytest.mark.parametrize(
    ("method", "part", "promised"),
    [
        ("cmsc", "encoder", "a Module"),
        ("cmsc", "loss", "a function"),
        ("byol", "objective", "a Module"),
        ("simclr", "views", "a function"),
    ],
)
def test_what_builds_nothing_is_named(method, part, promised):
    plan = resolve(installed(), {"run": {"method": method, "dataset": "demo"}})
    chosen = getattr(plan, part)
    broken = attrs.evolve(chosen, offer=attrs.evolve(chosen.offer, build=lambda *_: None))
    plan = attrs.evolve(plan, **{part: broken})
    signals = SignalFacts(samples=2500, channels=("II",))
    said = f"`build` of the {part} {chosen.offer.name!r} must return {promised}, got None"
    make = build.build_views if part == "views" else lambda plan, signals: build.build_learner(plan, signals, CPU)
    with pytest.raises(PluginError, match=said):
        make(plan, signals)


class Odd(nn.Module):
    """An encoder that gives whatever a function makes of the promised embeddings."""

    def __init__(self, make):
        super().__init__()
        self.layer, self.norm, self.make = nn.Linear(1, 8), nn.BatchNorm1d(8), make

    def forward(self, signal):
        return self.make(self.norm(self.layer(signal.mean((1, 2)).unsqueeze(1))))


def raising(problem):
    def make(z):
        raise problem

    return make


def train_with(encoder):
    """Build the encoders of a run."""
    plan = plan_of(installed())
    offer = attrs.evolve(plan.encoder.offer, build=lambda *given: encoder)
    return build.build_encoders(attrs.evolve(plan, encoder=attrs.evolve(plan.encoder, offer=offer)), 12, CPU)


def evaluate_with(encoder):
    """Build the encoder of an evaluation, linear or fine-tuned."""
    offered = installed().encoders.get("cnn")
    chosen = Chosen(attrs.evolve(offered.offer, build=lambda *given: encoder), None, offered.owner)
    return build.build_encoder(Pretrained(init="random", encoder=chosen, embedding_dim=8), 2500, 0, False, CPU)


@pytest.mark.parametrize("use", [train_with, evaluate_with])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda z: z[:, :7], r"and gives float32 of shape \(2, 7\) on cpu\."),
        (lambda z: z[:, None].expand(-1, 3, -1), r"and gives float32 of shape \(2, 3, 8\) on cpu\."),
        (lambda z: z.flatten(), r"and gives float32 of shape \(16,\) on cpu\."),
        (lambda z: z.long(), r"and gives int64 of shape \(2, 8\) on cpu\."),
        (lambda z: z.to("meta"), r"and gives float32 of shape \(2, 8\) on meta\."),
        (lambda z: (z, None), "and gives a tuple"),
        (raising(RuntimeError("mat1 and mat2")), "and fails: RuntimeError: mat1 and mat2"),
    ],
)
def test_an_encoder_that_gives_anything_else_is_refused_before_the_first_step(use, make, said):
    """With the name of its plugin. Seven numbers would reach the report; a sequence would end it."""
    start = r"Encoder 'cnn' of plugin 'cnn' \(clocs [^)]*\) must give floats of shape \(2, 8\) on cpu for a signal "
    with pytest.raises(PluginError, match=start + r"of shape \(2, 1, 2500\), " + said):
        use(Odd(make))


@pytest.mark.parametrize("use", [train_with, evaluate_with])
def test_looking_at_the_output_changes_neither_the_encoder_nor_the_random_state(use):
    """Or every number would change: statistics of batch normalisation, dropout, parts that are frozen in eval mode."""
    encoder = Odd(lambda z: (z + torch.rand_like(z)).double())
    encoder.norm.eval()
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    use(encoder)
    after_building = torch.rand(3)
    torch.manual_seed(build.seeds.derive(0, "weights"))
    assert torch.equal(after_building, torch.rand(3))
    assert (encoder.training, encoder.norm.training) == (True, False)
    assert all(torch.equal(tensor, before[name]) for name, tensor in encoder.state_dict().items())


def test_a_way_to_compute_that_this_machine_lacks_is_told_as_such():
    """It is no fault of the plugin."""
    with pytest.raises(Unavailable, match="no kernels here"):
        train_with(Odd(raising(Unavailable("no kernels here"))))


@pytest.mark.parametrize("method", ["cmsc", "simclr", "cmlc"])
@pytest.mark.parametrize("sizes", [("batch_size=1",), ("batch_size=1", "contrast_batch=1")])
def test_a_batch_of_one_instance_is_refused_where_it_has_nothing_to_contrast(method, sizes):
    """The loss is 0 from the first step on, and the run ends without a word, its weights as they were drawn."""
    plan = resolve(installed(), {"run": {"method": method, "dataset": "demo"}}, sizes)
    with pytest.raises(SettingsError, match=r"`batch_size=1` leaves the loss '.*' nothing to contrast"):
        build.refuse_lone_instances(plan, torch.device("cpu"))


@pytest.mark.parametrize(
    ("method", "sizes"),
    [("cmsc", ("batch_size=1", "contrast_batch=2")), ("simclr", ("batch_size=2",)), ("byol", ("batch_size=1",))],
)
def test_a_step_of_two_instances_and_a_method_that_contrasts_none_are_accepted(method, sizes):
    plan = resolve(installed(), {"run": {"method": method, "dataset": "demo"}}, sizes)
    build.refuse_lone_instances(plan, torch.device("cpu"))


class Timed(Odd):
    """An encoder with a sequence, changed by a function."""

    def __init__(self, make=lambda z: z, stride=50, width=8):
        super().__init__(lambda z: z)
        self.change, self.stride, self.width = make, stride, width

    def sequence(self, signal):
        return self.change(torch.zeros(len(signal), signal.shape[-1] // 50, 8))


def train_on_sequences(encoder):
    """Build the encoders of a run whose objective reads their sequence."""
    plan = plan_of(installed())
    encoder_offer = attrs.evolve(plan.encoder.offer, build=lambda *given: encoder, sequence=True)
    objective = Chosen(Objective(name="future", summary="s", build=lambda *given: None, sequence=True), None)
    chosen = attrs.evolve(plan.encoder, offer=encoder_offer)
    return build.build_encoders(attrs.evolve(plan, encoder=chosen, objective=objective), 12, CPU)


def test_an_encoder_with_a_sequence_as_promised_is_built():
    train_on_sequences(Timed())


@pytest.mark.parametrize(
    ("encoder", "said"),
    [
        (Odd(lambda z: z), r"must have the method `sequence` and the positive integers `stride` and `width`"),
        (Timed(stride=50.0), r"it has stride 50.0 and width 8\. Its plugin"),
        (Timed(lambda z: z.mean(1)), r"shape \(2, 50, 8\) on cpu .*, and gives float32 of shape \(2, 8\) on cpu"),
        (Timed(width=9), r"shape \(2, 50, 9\) on cpu .*, and gives float32 of shape \(2, 50, 8\) on cpu"),
        (Timed(stride=49), r"shape \(2, 52, 8\) on cpu .*, and gives float32 of shape \(2, 50, 8\) on cpu"),
        (Timed(lambda z: z.long()), "and gives int64"),
        (Timed(raising(RuntimeError("mat1"))), "and fails: RuntimeError: mat1"),
    ],
)
def test_any_other_sequence_is_refused_before_the_first_step(encoder, said):
    with pytest.raises(PluginError, match=r"Encoder 'cnn' of plugin 'cnn' \(clocs [^)]*\) .*" + said):
        train_on_sequences(encoder)


def test_a_stride_longer_than_a_frame_is_refused():
    with pytest.raises(SettingsError, match=r"'cnn' are 2501 samples apart, and a frame has 2500\. Use longer frames"):
        train_on_sequences(Timed(stride=2501))
    train_on_sequences(Timed(lambda z: z[:, :1], stride=2500))


def test_an_objective_is_told_all_that_is_known_of_a_run():
    """Steps by the instances that are used, of which the last batch may be smaller."""
    told = []

    def build_it(options, setup):
        told.append(setup)
        return nn.Linear(1, 1)

    plan = resolve(installed(), {"run": {"method": "byol", "dataset": "demo", "embedding_dim": 8}}, ["epochs=3"])
    offer = attrs.evolve(plan.objective.offer, build=build_it)
    plan = attrs.evolve(plan, objective=attrs.evolve(plan.objective, offer=offer))
    signals = SignalFacts(unit="mV", frame_rate=500.0, samples=2500, channels=("II", "V2"))
    learner = build.build_learner(plan, signals, CPU, instances=2 * plan.train.batch_size + 1)
    few = attrs.evolve(plan, train=attrs.evolve(plan.train, instances=5))
    build.build_learner(few, signals, CPU, instances=1000)
    setup = told[0]
    assert setup.encoders == tuple(learner.encoders) == (setup.encoder,)
    assert (setup.signals, setup.device) == (signals, CPU)
    assert [(one.steps_per_epoch, one.steps) for one in told] == [(3, 9), (1, 3)]


def test_an_objective_that_is_built_by_an_earlier_setup_has_one_encoder():
    encoder = nn.Identity()
    setup = Setup(encoder=encoder, embedding_dim=2, task=None)
    assert setup.encoders == (encoder,)


@pytest.mark.parametrize(("method", "axis"), [("cmsc", None), ("cmsc-rlm", -2)])
def test_signals_are_described_as_the_views_have_them(method, axis, tmp_path):
    plan = resolve(installed(), {"run": {"method": method, "dataset": "demo"}})
    prepared = fake_prepared(tmp_path)
    found = build.describe_signals(plan, prepared, ("L1", "L0"))
    rate = prepared.frame_rate
    assert found == SignalFacts(unit="mV", frame_rate=rate, samples=50, channels=("L1", "L0"), channel_axis=axis)


def test_a_perturbation_that_cannot_work_on_the_signals_is_refused():
    def refuse(options, signals):
        raise ValueError(f"a hum needs one sampling rate, got {signals.frame_rate}")

    plan = resolve(installed(), {"run": {"method": "simclr", "dataset": "demo"}})
    hum = Chosen(Perturbation(name="hum", summary="s", build_for=refuse), None)
    with pytest.raises(SettingsError, match=r"'hum' cannot be used here: a hum needs one sampling rate, got None"):
        build.build_views(attrs.evolve(plan, perturbations=(hum,)), SignalFacts())


@pytest.mark.parametrize(
    ("table", "changed", "message"),
    [
        ("train", {"batch_size": 3}, "`batch_size=3` is smaller than the 4 processes that share each batch."),
        ("train", {"contrast_batch": 2}, "`contrast_batch=2` is smaller than the 4 processes that share each batch."),
        (
            "train",
            {"contrast_batch": 512, "sync_batchnorm": True},
            "`contrast_batch=512` encodes one batch at a time in each process",
        ),
        ("run", {"step": "captured"}, "`step='captured'` needs a GPU"),
    ],
)
def test_settings_that_several_processes_cannot_serve_are_refused(table, changed, message):
    plan = plan_of(installed())
    plan = attrs.evolve(plan, **{table: attrs.evolve(getattr(plan, table), **changed)})
    with pytest.raises(SettingsError, match=re.escape(message)):
        build.choose_epochs(plan, CPU, print, Group(ThreadWire(0, new_meeting(4))))
