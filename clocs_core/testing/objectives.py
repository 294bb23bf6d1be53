"""Rules for objectives: modules that turn views into a scalar, save their state, and change only themselves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from clocs_core.contracts.batches import Batch, Views
from clocs_core.contracts.offers import Objective
from clocs_core.errors import PluginError
from clocs_core.testing.assembly import SAMPLES, ViewSource
from clocs_core.testing.checks import Check, expect, label_of, make_checks, rules_of
from clocs_core.testing.pace import Clock, expect_quick
from clocs_core.testing.tensors import (
    close,
    equal,
    on_tensors,
    refuse_host_sync,
    refuse_named_devices,
    refuse_other_devices,
    refuse_other_randomness,
)
from clocs_core.testing.threads import on_ranks
from clocs_core.train.gradcache import Known, without_signal
from clocs_core.train.gradient_sums import sum_gradients
from clocs_core.train.ranks import Group, Part
from clocs_core.train.step import Encoding, after_step, arguments_of, loss_of, train_step

DIM = 16
STEPS = 3  # before and after a run is resumed


@attrs.frozen
class _Made:
    """An objective with encoders and views to run it on."""

    objective: nn.Module
    encoders: nn.ModuleList
    views: Views

    def loss(self) -> Tensor:
        return self.with_components()[0]

    def with_components(self) -> tuple[Tensor, Mapping[str, Tensor]]:
        encode = Encoding(list(self.encoders), self.views.encoder_of_view)
        return loss_of(self.objective, encode, self.views, torch.Generator().manual_seed(0))

    def moved(self, move: Callable[[Tensor], Tensor]) -> _Made:
        """Apply a function to each tensor of the views."""
        views, target = self.views, self.views.target
        batch: Batch = on_tensors(views.batch, move)
        target = None if target is None else move(target)
        return attrs.evolve(self, views=attrs.evolve(views, signal=move(views.signal), batch=batch, target=target))

    def load(self, other: _Made) -> None:
        """Copy the state of another one, as a checkpoint does."""
        self.objective.load_state_dict(other.objective.state_dict())
        self.encoders.load_state_dict(other.encoders.state_dict())

    def state(self) -> dict[str, Tensor]:
        return {**self.objective.state_dict(), **self.encoders.state_dict(prefix="encoder ")}

    def eval(self) -> _Made:
        return attrs.evolve(self, objective=self.objective.eval(), encoders=self.encoders.eval())


@attrs.frozen
class _Case:
    offer: Objective
    options: Any
    source: ViewSource
    clock: Clock

    def encoders(self, views: Views, seed: int) -> nn.ModuleList:
        return self.source.encoders(views.signal.shape[2], SAMPLES, DIM, seed)

    def make(self, seed: int = 0, encoders: nn.ModuleList | None = None) -> _Made:
        views = self.source.views(SAMPLES)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            if encoders is None:
                encoders = self.encoders(views, seed)
            objective = self.offer.build(self.options, self.source.setup(encoders, DIM))
        return _Made(objective.train(), encoders.train(), views)


def checks_of_objective(offer: Objective, options: Any, source: ViewSource, clock: Clock) -> list[Check]:
    """Return the checks of an objective, run on the views of `source`."""
    return make_checks(label_of(offer), rules_of(__name__), _Case(offer, options, source, clock))


def _scalar(case: _Case) -> None:
    """forward(encode, views) returns one number, a tensor without dimensions."""
    shape = tuple(case.make().loss().shape)
    expect(shape == (), "a tensor of shape ()", shape, "Reduce by a mean over the batch.")


def _finite(case: _Case) -> None:
    """The loss is finite."""
    finite = bool(case.make().loss().isfinite().all())
    expect(finite, "a finite loss", "a NaN or an infinity", "Guard divisions, logarithms and square roots.")


def _components(case: _Case) -> None:
    """Components of the loss, if forward returns (loss, components), are tensors without dimensions by name."""
    found = case.make().with_components()[1]
    advice = "Return (loss, {'name': tensor}), each tensor reduced by a mean over the batch."
    named = isinstance(found, Mapping) and all(isinstance(name, str) for name in found)
    expect(named, "a mapping of names to tensors", repr(found)[:60], advice)
    odd = [name for name, one in found.items() if not isinstance(one, Tensor) or one.shape != ()]
    expect(not odd, "tensors of shape ()", f"others for {', '.join(odd)}", advice)


def _reaches_encoder(case: _Case) -> None:
    """The gradient reaches the given encoder."""
    made = case.make()
    _backward(made)
    reached = any(one.grad is not None and bool(one.grad.abs().sum() > 0) for one in made.encoders.parameters())
    expect(reached, "a gradient in the encoder", "none", "Encode with forward's argument `encode`.")


def _own_gradient(case: _Case) -> None:
    """Every parameter of the objective that requires a gradient gets one: the optimiser updates these."""
    made = case.make()
    _backward(made)
    named = made.objective.named_parameters()
    missed = [name for name, one in named if one.requires_grad and one.grad is None]
    found = f"none for {', '.join(missed)}"
    expect(not missed, "a gradient for every parameter", found, "Freeze a target with requires_grad_(False).")


def _own_parameters(case: _Case) -> None:
    """The encoder is not one of the objective's modules: it would be trained and saved twice."""
    made = case.make()
    theirs = {id(one) for one in made.encoders.parameters()}
    shared = [name for name, one in made.objective.named_parameters() if id(one) in theirs]
    found = f"those of the encoder, as {', '.join(shared)}"
    expect(not shared, "only its own parameters", found, "Keep a copy.deepcopy of the encoder, or no reference.")


def _state(case: _Case) -> None:
    """The state dict is complete: a second objective that loads it gives the same loss."""
    first = case.make(seed=0)
    train_step(list(first.encoders), first.objective, _optimiser(first), first.views)
    with torch.random.fork_rng(devices=[]):
        other = case.encoders(first.views, seed=2)  # other encoders: loading must replace a copy of it too
    first = attrs.evolve(first, views=case.source.views(SAMPLES))
    second = attrs.evolve(case.make(seed=1, encoders=other), encoders=first.encoders)
    second.objective.load_state_dict(first.objective.state_dict())
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        expected = first.eval().loss()
        torch.default_generator.manual_seed(3)
        found = second.eval().loss()
    advice = "Keep every tensor as an nn.Parameter or a registered buffer."
    expect(close(found, expected, 1e-6), f"the same loss, {expected.tolist()}", found.tolist(), advice)


def _resumes(case: _Case) -> None:
    """A run that is stopped and resumed ends as one that is not: whatever changes in training is in the state dict.

    Three steps, a copy of the state, and three steps of a new objective that loads it, must equal six steps.
    """
    whole, begun, fresh = case.make(), case.make(), case.make()
    begun.load(whole)  # equal weights at first; if building is not seeded, the rule `seeded` reports it
    _train(case, whole, range(2 * STEPS))
    _train(case, begun, range(STEPS))
    fresh.load(begun)
    _train(case, fresh, range(STEPS, 2 * STEPS))
    expected, found = whole.state(), fresh.state()
    changed = [name for name in expected if name not in found or not equal(found[name], expected[name])]
    found_instead = f"another {', '.join(changed[:3])}"
    advice = "Keep pointers, counters and schedules as tensors in registered buffers."
    expect(not changed, "the weights and the state of a run that was not stopped", found_instead, advice)


def _own_randomness(case: _Case) -> None:
    """Random numbers come from forward's argument `generator`, or in training from torch's: a run seeds both."""
    made = case.make()
    advice = "Draw with forward's argument `generator`; neither numpy's nor Python's generators are seeded."
    refuse_other_randomness(lambda: _train(case, made, range(1)), advice, ("numpy", "random"))
    refuse_other_randomness(made.eval().loss, advice)


def _of_embeddings(case: _Case) -> None:
    """With of_embeddings=True, the loss needs nothing of the signals but `encode(views.signal)`, which it calls."""
    if not case.offer.of_embeddings:
        return
    made, blind = case.make(), case.make()
    blind.load(made)
    with torch.no_grad():
        z = Encoding(list(made.encoders), made.views.encoder_of_view)(made.views.signal)
    advice = "Encode `views.signal` itself, once, and read no samples; or offer it with of_embeddings=False."
    losses = []
    for one in (made, attrs.evolve(blind, views=without_signal(blind.views))):
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(4)
            try:
                generator = torch.Generator().manual_seed(0)
                losses.append(loss_of(one.objective, Known(z, one.views.signal), one.views, generator)[0])
            except PluginError as problem:
                expect(False, "a loss of embeddings alone", str(problem), advice)
    expect(equal(*losses), f"the same loss without signals, {losses[0].tolist()}", losses[1].tolist(), advice)


def _ranks(case: _Case) -> None:
    """With an argument `ranks`, shares of several processes add up to the loss, and their gradients to its."""
    made = case.make().eval()
    if "ranks" not in arguments_of(made.objective.forward):
        return
    loss = made.loss()
    loss.backward()
    copies = [case.make().eval() for _ in range(3)]
    for one in copies:
        one.load(made)

    def share(group: Group) -> tuple[Tensor, list[Tensor | None]]:
        one = copies[group.rank]
        part = Part(group, (len(one.views.batch.patient) - 2, 0, 2))
        encode = Encoding(list(one.encoders), one.views.encoder_of_view)
        found, _ = loss_of(one.objective, encode, one.views, torch.Generator().manual_seed(0), part)
        found.backward()
        sum_gradients(group, _weights(one))
        return found.detach(), [weight.grad for weight in _weights(one)]

    results = on_ranks(len(copies), share)
    total = torch.stack([found for found, _ in results]).sum()
    advice = "Weigh means by the instances of all processes: `ranks.share_of_mean`; or leave out `ranks`."
    expect(close(total, loss), f"shares that add up to {loss.tolist()}", total.tolist(), advice)
    for weight, summed in zip(_weights(made), results[0][1], strict=True):
        same = (summed is None) == (weight.grad is None)
        same = same and (summed is None or weight.grad is None or close(summed, weight.grad))
        expect(same, "gradients that add up to those of one process", "others", advice)


def _weights(made: _Made) -> list[nn.Parameter]:
    return [*made.encoders.parameters(), *made.objective.parameters()]


def _seeded(case: _Case) -> None:
    """Two objectives built under the same torch.manual_seed have the same state."""
    first, second = (case.make(seed=2).objective.state_dict() for _ in range(2))
    odd = [name for name in first if name not in second or not torch.equal(first[name], second[name])]
    expect(not odd, "equal weights under equal seeds", f"others in {', '.join(odd)}", "Draw from torch's generator.")


def _views_unchanged(case: _Case) -> None:
    """The views are not modified: they share memory with the batch."""
    made, before = case.make(), case.source.views(SAMPLES)
    made.loss()
    same = torch.equal(made.views.signal, before.signal) and torch.equal(made.views.batch.patient, before.batch.patient)
    expect(same, "the views as they were", "other values", "Use no in-place op on the views.")


def _device(case: _Case) -> None:
    """Every tensor is created on the device of the views."""
    made = case.make()
    refuse_other_devices(made.loss, made.views.signal.device)
    elsewhere = attrs.evolve(case.make(), objective=made.objective.to("meta"), encoders=made.encoders.to("meta"))
    refuse_named_devices(lambda move: elsewhere.moved(move).loss())


def _no_host_sync(case: _Case) -> None:
    """The loss causes no host sync."""
    made = case.make()
    refuse_host_sync(lambda fake: made.moved(fake).loss())


def _quick(case: _Case) -> None:
    """The loss of a small batch takes little processor time."""
    made = case.make()
    expect_quick(made.loss, "a small batch", "Compute all instances at once, without loops.", case.clock)


def _after_step_finite(case: _Case) -> None:
    """Three training steps leave encoder and objective finite."""
    made = case.make()
    optimiser = _optimiser(made)
    for _ in range(3):
        train_step(list(made.encoders), made.objective, optimiser, made.views)
    state = {**made.objective.state_dict(), **made.encoders.state_dict()}
    odd = [name for name, tensor in state.items() if tensor.is_floating_point() and not tensor.isfinite().all()]
    expect(not odd, "finite weights", f"others in {', '.join(odd)}", "Guard what after_step divides by.")


def _after_step_changes_itself(case: _Case) -> None:
    """after_step does not change the encoder."""
    made = case.make()
    before = copy.deepcopy(made.encoders.state_dict())
    _after_step(made)
    changed = [name for name, tensor in made.encoders.state_dict().items() if not torch.equal(tensor, before[name])]
    expect(not changed, "the encoder as it was", f"another {', '.join(changed)}", "Change the objective's own state.")


def _after_step_in_place(case: _Case) -> None:
    """after_step changes tensors in place: a captured step uses fixed addresses."""
    made = case.make()
    before = {name: tensor.data_ptr() for name, tensor in made.objective.state_dict().items()}
    _after_step(made)
    after = {name: tensor.data_ptr() for name, tensor in made.objective.state_dict().items()}
    moved = [name for name in before if after.get(name) != before[name]]
    expect(not moved, "state at the same address", f"new tensors for {', '.join(moved)}", "Use copy_, lerp_ and so on.")


def _after_step_no_host_sync(case: _Case) -> None:
    """after_step causes no host sync."""
    made = case.make()
    refuse_host_sync(lambda fake: _after_step(made))


def _after_step(made: _Made) -> None:
    after_step(made.objective, list(made.encoders))


def _train(case: _Case, made: _Made, steps: range) -> None:
    """Take training steps, each with views and random numbers of its own."""
    optimiser = _optimiser(made)
    with torch.random.fork_rng(devices=[]):
        for step in steps:
            torch.default_generator.manual_seed(step)
            generator = torch.Generator().manual_seed(step)
            views = case.source.views(SAMPLES, seed=step)
            train_step(list(made.encoders), made.objective, optimiser, views, generator=generator)


def _backward(made: _Made) -> None:
    loss = made.loss()
    if loss.requires_grad:
        loss.sum().backward()


def _optimiser(made: _Made) -> torch.optim.Optimizer:
    parameters = [*made.encoders.parameters(), *made.objective.parameters()]
    return torch.optim.SGD([one for one in dict.fromkeys(parameters) if one.requires_grad], lr=0.01)
