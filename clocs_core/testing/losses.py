"""Rules for losses: pure functions of embeddings (view, batch, dim) and patient ids (batch,) that return a scalar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import torch
from torch import Tensor

from clocs_core.contracts.offers import Loss
from clocs_core.testing.checks import Check, expect, label_of, make_checks, rules_of
from clocs_core.testing.pace import Clock, expect_quick
from clocs_core.testing.tensors import (
    close,
    refuse_host_sync,
    refuse_named_devices,
    refuse_other_devices,
    refuse_other_randomness,
)
from clocs_core.testing.threads import on_ranks
from clocs_core.train.ranks import Group, Part
from clocs_core.train.step import arguments_of

VIEWS, BATCH, DIM = 2, 6, 16
SIZES = (3, 0, 3)  # instances of each of three processes; those of patient 1 are in two of them


@attrs.frozen
class _Case:
    offer: Loss
    options: Any
    clock: Clock

    def loss(self, z: Tensor, patient: Tensor) -> Tensor:
        return self.offer.build(self.options)(z, patient)

    def embeddings(self, batch: int = BATCH) -> Tensor:
        return torch.randn(VIEWS, batch, DIM, generator=torch.Generator().manual_seed(0))

    def patient(self) -> Tensor:
        return torch.arange(BATCH) // 2  # two instances each


def checks_of_loss(offer: Loss, options: Any, clock: Clock) -> list[Check]:
    """Return the checks of a loss."""
    return make_checks(label_of(offer), rules_of(__name__), _Case(offer, options, clock))


def _scalar(case: _Case) -> None:
    """The loss is one number, a tensor without dimensions, in float32 for float32 embeddings."""
    found = case.loss(case.embeddings(), case.patient())
    what = (tuple(found.shape), found.dtype)
    expect(what == ((), torch.float32), "a float32 tensor of shape ()", what, "Reduce by a mean over the batch.")


def _finite(case: _Case) -> None:
    """Loss and gradient are finite for ordinary embeddings."""
    _expect_finite(case, case.embeddings(), case.patient())


def _no_patient_twice(case: _Case) -> None:
    """Loss and gradient are finite when every patient occurs once in the batch."""
    _expect_finite(case, case.embeddings(), torch.arange(BATCH))


def _one_patient(case: _Case) -> None:
    """Loss and gradient are finite when all instances are of one patient."""
    _expect_finite(case, case.embeddings(), torch.zeros(BATCH, dtype=torch.int64))


def _batch_of_one(case: _Case) -> None:
    """Loss and gradient are finite for a batch of one instance; the last batch of an epoch can be such."""
    _expect_finite(case, case.embeddings(1), torch.tensor([3]))


def _zero_embeddings(case: _Case) -> None:
    """Loss and gradient are finite when an embedding is zero, as after a ReLU."""
    z = case.embeddings()
    z[0, 0] = 0.0
    _expect_finite(case, z, case.patient())


def _gradient(case: _Case) -> None:
    """The gradient reaches every view."""
    z = case.embeddings().requires_grad_()
    found = case.loss(z, case.patient())
    expect(found.requires_grad, "a loss with a gradient", "none", "Do not detach, and use no no_grad.")
    (gradient,) = torch.autograd.grad(found.sum(), z, allow_unused=True)
    missed = [v for v in range(VIEWS) if gradient is None or not gradient[v].abs().sum() > 0]
    expect(not missed, "a gradient for every view", f"none for view {missed}", "Let every view take part in the loss.")


def _order_of_batch(case: _Case) -> None:
    """The loss does not depend on the order of the instances."""
    z, patient, order = case.embeddings(), case.patient(), torch.arange(BATCH).roll(1)
    _expect_same(
        case.loss(z[:, order], patient[order]),
        case.loss(z, patient),
        "Compare instances by patient id, never by their place in the batch.",
    )


def _names_of_patients(case: _Case) -> None:
    """The loss does not depend on the ids of the patients, only on which are equal."""
    z, patient = case.embeddings(), case.patient()
    other = torch.tensor([2**40 + 11, 5, 7])[patient]
    _expect_same(case.loss(z, other), case.loss(z, patient), "Use ids for nothing but whether they are equal.")


def _input_unchanged(case: _Case) -> None:
    """Embeddings and ids are not modified."""
    z, patient = case.embeddings(), case.patient()
    case.loss(z, patient)
    same = torch.equal(z, case.embeddings()) and torch.equal(patient, case.patient())
    expect(same, "the arguments as they were", "other values", "Use no in-place op on an argument.")


def _pure(case: _Case) -> None:
    """The same arguments give the same loss, and no global random generator is used."""
    z, patient = case.embeddings(), case.patient()
    function = case.offer.build(case.options)
    advice = "A loss with state or randomness is an Objective."
    refuse_other_randomness(lambda: function(z.clone(), patient.clone()), advice)
    _expect_same(function(z.clone(), patient.clone()), function(z.clone(), patient.clone()), advice)


def _ranks(case: _Case) -> None:
    """With an argument `ranks`, the shares of several processes add up to the loss, and their gradients are its."""
    function: Callable[..., Tensor] = case.offer.build(case.options)
    if "ranks" not in arguments_of(function):
        return
    whole, patient = case.embeddings().requires_grad_(), case.patient()
    loss = function(whole, patient)
    (gradient,) = torch.autograd.grad(loss, whole)

    def share(group: Group) -> tuple[Tensor, Tensor]:
        part = Part(group, SIZES)
        own = case.embeddings()[:, part.own].requires_grad_()
        found = function(own, patient[part.own], ranks=part)
        return found.detach(), torch.autograd.grad(found, own)[0]

    shares, gradients = zip(*on_ranks(len(SIZES), share), strict=True)
    advice = "Gather what the other processes have; or leave out the argument `ranks`, and core does it."
    _expect_same(torch.stack(shares).sum(), loss, advice)
    expect(close(torch.cat(gradients, 1), gradient), "the gradient of the whole loss", "another one", advice)


def _device(case: _Case) -> None:
    """Every tensor is created on the device of the embeddings."""
    z, patient = case.embeddings(), case.patient()
    refuse_other_devices(lambda: case.loss(z, patient), z.device)
    refuse_named_devices(lambda move: case.loss(move(z), move(patient)))


def _no_host_sync(case: _Case) -> None:
    """No host sync."""
    refuse_host_sync(lambda fake: case.loss(fake(case.embeddings()), fake(case.patient())))


def _quick(case: _Case) -> None:
    """A small batch takes little processor time."""
    z, patient = case.embeddings(), case.patient()
    expect_quick(
        lambda: case.loss(z, patient),
        f"{VIEWS} views of {BATCH}",
        "Compare all pairs at once, without loops.",
        case.clock,
    )


def _expect_finite(case: _Case, z: Tensor, patient: Tensor) -> None:
    z = z.clone().requires_grad_()
    found = case.loss(z, patient)
    expect(
        bool(found.isfinite().all()), "a finite loss", found.tolist(), "Guard every mean over a set that may be empty."
    )
    if found.requires_grad:
        (gradient,) = torch.autograd.grad(found.sum(), z, allow_unused=True)
        finite = gradient is None or bool(gradient.isfinite().all())
        expect(finite, "a finite gradient", "a NaN or an infinity", "Guard divisions, logarithms and square roots.")


def _expect_same(found: Tensor, expected: Tensor, change: str) -> None:
    expect(close(found, expected, 1e-5), f"the same loss, {expected.tolist()}", found.tolist(), change)
