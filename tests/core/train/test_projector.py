"""The projector: a network between embedding and loss that is trained, saved, resumed, and never evaluated."""

from __future__ import annotations

import attrs
import pytest
import torch
from fake_encoders import installed, plan_of
from fake_frames import FRAME, fake_prepared, fake_store
from fake_recordings import CHANNELS
from stand_in_graphs import capture_on_the_cpu
from torch import nn

from clocs_core.contracts.batches import Views
from clocs_core.data.store import list_instances
from clocs_core.errors import SettingsError
from clocs_core.plan.pretraining import resolve
from clocs_core.settings.options import structure
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.build import build_learner, draw_projector
from clocs_core.train.captured import CapturedEpochs
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.gradcache import contrast_step
from clocs_core.train.learner import start
from clocs_core.train.normalise import min_max
from clocs_core.train.projector import Projector
from clocs_core.train.step import ContrastiveObjective, ViewMaker, encode, validation_step

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    prepared = fake_prepared(tmp_path_factory.mktemp("prepared"))
    train, _ = list_instances(prepared, frozenset({"p0", "p1", "p2"}), CHANNELS, 2, False, CPU)
    maker = ViewMaker(lambda batch, generator: Views(batch.signal.transpose(0, 1), batch), (), min_max)
    return Training(fake_store(prepared), maker, train, train, TrainSettings(batch_size=8), 0)


def contrast(z, patient):
    similarity = nn.functional.normalize(z[0], dim=-1) @ nn.functional.normalize(z[1], dim=-1).T
    return (similarity.logsumexp(1) - similarity.diagonal()).mean()


def learner(widths=(6, 5)):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(FRAME, 4))
    return start(nn.ModuleList([encoder]), ContrastiveObjective(contrast, Projector(4, widths)), 1e-2)


def silent(done, steps): ...


def by_loops(projector, rows):
    """Linear, BatchNorm over the rows, ReLU, and so on, from their definitions."""
    for layer in projector.layers:
        if isinstance(layer, nn.Linear):
            bias = [0.0] * layer.out_features if layer.bias is None else layer.bias.tolist()
            weight = layer.weight.tolist()
            rows = [
                [sum(w * x for w, x in zip(line, row, strict=True)) + b for line, b in zip(weight, bias, strict=True)]
                for row in rows
            ]
        elif isinstance(layer, nn.BatchNorm1d):
            columns, gains, shifts = [], layer.weight.tolist(), layer.bias.tolist()
            for column, gain, shift in zip(zip(*rows, strict=True), gains, shifts, strict=True):
                mean = sum(column) / len(column)
                deviation = (sum((x - mean) ** 2 for x in column) / len(column) + layer.eps) ** 0.5
                columns.append([gain * (x - mean) / deviation + shift for x in column])
            rows = [list(row) for row in zip(*columns, strict=True)]
        else:
            rows = [[max(0.0, x) for x in row] for row in rows]
    return rows


@pytest.mark.parametrize("per_view", [False, True])
def test_it_is_an_mlp_with_batchnorm_over_all_views_or_over_one(per_view):
    torch.manual_seed(0)
    projector = Projector(3, (5, 4, 2), per_view)
    kinds = [nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear]
    assert all(isinstance(layer, kind) for layer, kind in zip(projector.layers, kinds, strict=True))
    z = torch.randn(2, 6, 3)
    blocks = z.tolist() if per_view else [z.flatten(0, 1).tolist()]
    expected = [row for block in blocks for row in by_loops(projector, block)]
    found = projector(z)
    assert found.shape == (2, 6, 2)
    torch.testing.assert_close(found.flatten(0, 1), torch.tensor(expected), atol=1e-5, rtol=1e-4)


def test_a_single_row_is_projected_and_leaves_the_statistics_alone():
    """A last batch of one instance, view by view, has no deviation to divide by."""
    projector = Projector(3, (5, 2), per_view=True)
    before = projector.layers[1].running_mean.clone()
    assert projector(torch.randn(2, 1, 3)).isfinite().all()
    assert torch.equal(projector.layers[1].running_mean, before)


def test_in_bf16_its_layers_are_under_autocast_and_what_it_gives_is_float32():
    torch.manual_seed(0)
    projector = Projector(3, (5, 2), autocast="bf16")
    seen = []
    projector.layers[0].register_forward_hook(lambda layer, given, found: seen.append(found.dtype))
    z = torch.randn(2, 6, 3)
    found = projector(z)
    assert (seen, found.dtype) == ([torch.bfloat16], torch.float32)
    projector.autocast = "none"
    torch.testing.assert_close(found, projector(z), atol=0.1, rtol=0.1)
    assert projector(z.double().float()).dtype == torch.float32


def test_its_weights_follow_from_the_seed_and_move_no_others():
    """A run with a projector begins with the encoder that it has without one."""
    plan = plan_of(installed())
    other = attrs.evolve(plan, train=attrs.evolve(plan.train, projector=(16, 8)))
    without, with_one = build_learner(plan, 12, CPU), build_learner(other, 12, CPU)
    for name, tensor in without.encoders.state_dict().items():
        assert torch.equal(tensor, with_one.encoders.state_dict()[name])
    weights = with_one.objective.projector.state_dict()
    again = draw_projector(other).state_dict()
    assert all(torch.equal(weights[name], again[name]) for name in again)
    seeded = draw_projector(attrs.evolve(other, run=attrs.evolve(plan.run, seed=1))).state_dict()
    assert not torch.equal(weights["layers.0.weight"], seeded["layers.0.weight"])
    assert draw_projector(plan) is None
    held = {id(weight) for weight in with_one.optimiser.weights}
    assert all(id(weight) in held for weight in with_one.objective.parameters())


def test_it_trains_and_what_is_scored_is_before_it(training):
    one = learner()
    before = one.objective.projector.layers[0].weight.clone()
    plain_epoch(one, training, 1, silent)
    assert not torch.equal(one.objective.projector.layers[0].weight, before)
    views = training.make_views(training.store.gather(training.train, torch.arange(5)), torch.Generator())
    _, z = validation_step(list(one.encoders.eval()), one.objective.eval(), views)
    assert torch.equal(z, encode(list(one.encoders), (), views.signal))
    assert z.shape[-1] == 4
    assert not any("projector" in name for name in one.best)


def test_it_is_resumed_to_the_last_bit(training, tmp_path):
    whole, first, second = learner(), learner(), learner()
    for epoch in (1, 2):
        plain_epoch(whole, training, epoch, silent)
    plain_epoch(first, training, 1, silent)
    save_checkpoint(first, tmp_path / "c.safetensors")
    load_checkpoint(second, tmp_path / "c.safetensors")
    plain_epoch(second, training, 2, silent)
    for part in ("encoders", "objective"):
        found, expected = getattr(second, part).state_dict(), getattr(whole, part).state_dict()
        assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_a_captured_step_trains_it_as_a_plain_one_does(training, monkeypatch):
    capture_on_the_cpu(monkeypatch)
    captured, one, other = CapturedEpochs(pytest.fail), learner(), learner()
    for epoch in (1, 2):
        assert torch.equal(captured(one, training, epoch, silent), plain_epoch(other, training, epoch, silent))
    expected = other.objective.state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in one.objective.state_dict().items())


def test_a_contrast_of_several_batches_projects_all_of_them_at_once(training):
    """Gradients of encoder and projector are those of the plain large batch."""
    rows, one, other = torch.arange(20), learner(), learner()
    settings = TrainSettings(batch_size=7, contrast_batch=20)
    contrast_step(one, attrs.evolve(training, settings=settings), rows, torch.Generator().manual_seed(5))
    views = training.make_views(training.store.gather(training.train, rows), torch.Generator().manual_seed(5))
    other.objective(lambda signal: encode(list(other.encoders), (), signal), views).backward()
    pairs = zip(one.optimiser.weights, other.optimiser.weights, strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found.grad, expected.grad, atol=1e-6, rtol=1e-4)


class Taking(nn.Module):
    """An objective that projects by what it is offered, if it takes it."""

    def __init__(self, setup, takes):
        super().__init__()
        self.projector = setup.projector if takes else None
        self.size = setup.embedding_dim


@pytest.mark.parametrize("takes", [True, False])
def test_an_objective_is_offered_it_and_one_that_leaves_it_is_refused(takes):
    """A run that says it has a projector must have one."""
    plan = resolve(installed(), {"run": {"method": "byol", "dataset": "demo"}}, ["projector=16,8", "embedding_dim=8"])
    offer = attrs.evolve(plan.objective.offer, build=lambda options, setup: Taking(setup, takes))
    plan = attrs.evolve(plan, objective=attrs.evolve(plan.objective, offer=offer))
    if takes:
        made = build_learner(plan, 12, CPU)
        assert {f"projector.{name}" for name in draw_projector(plan).state_dict()} == set(made.objective.state_dict())
        return
    with pytest.raises(SettingsError, match="'byol' of method 'byol' has no place for a projector"):
        build_learner(plan, 12, CPU)


@pytest.mark.parametrize("method", ["byol", "vicreg"])
def test_methods_with_a_head_of_their_own_say_so(method):
    plan = resolve(installed(), {"run": {"method": method, "dataset": "demo"}}, ["projector=16"])
    with pytest.raises(SettingsError, match="Leave out `projector`"):
        build_learner(plan, 12, CPU)


def test_a_method_may_preset_it_and_a_run_may_leave_it_out():
    catalogue = installed()
    method = catalogue.methods.get("cmsc").offer
    preset = attrs.evolve(method, presets={**method.presets, "train": {"projector": [32, 16]}})
    item = attrs.evolve(catalogue.methods.get("cmsc"), offer=preset)
    methods = attrs.evolve(catalogue.methods, offered=(item,))
    tables = {"run": {"method": "cmsc", "dataset": "demo"}}
    changed = attrs.evolve(catalogue, methods=methods)
    assert resolve(changed, tables).train.projector == (32, 16)
    assert resolve(changed, tables, ["projector=none"]).train.projector is None


@pytest.mark.parametrize("widths", [[], [0], [8, -1], [10**9]])
def test_widths_that_are_none_are_refused(widths):
    with pytest.raises(SettingsError, match=r"projector=\.\.\.`: must have widths from 1 to 65,536"):
        structure(TrainSettings, {"projector": widths}, "train")
