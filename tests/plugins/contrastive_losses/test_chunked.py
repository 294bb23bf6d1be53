"""The losses in chunks against the plain ones: any chunk, little memory, one derivative."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.testing import checks_of, failures
from clocs_plugins.contrastive_losses import clocs_losses
from clocs_plugins.contrastive_losses.chunked import chunked_loss
from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce
from clocs_plugins.contrastive_losses.weights import group_patients, patient_strengths, plain_strengths

OFFERS = {offer.name: offer for offer in clocs_losses()}
losses = pytest.mark.parametrize("name", OFFERS)


def embeddings(seed, views, batch, dim=4, dtype=torch.float64):
    return torch.randn(views, batch, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def loss_of(name, impl, z, patient, tau=0.2):
    return patient_nce(z, patient, tau, impl=impl) if name == "patient-nce" else nt_xent(z, tau, impl)


def gradients(loss, *leaves):
    return loss.detach(), *torch.autograd.grad(loss * -1.7, leaves)


def alike(found, expected):
    return all(torch.allclose(a, b, rtol=1e-10, atol=1e-12) for a, b in zip(found, expected, strict=True))


@given(
    seed=st.integers(0, 2**31),
    views=st.integers(2, 4),
    batch=st.integers(1, 9),
    at_once=st.integers(1, 120),
    people=st.integers(1, 9),
)
@settings(max_examples=40)
def test_the_size_of_a_chunk_changes_nothing(seed, views, batch, at_once, people):
    """From one row at a time to all of them; the last chunk of a view is mostly a shorter one."""
    z = embeddings(seed, views, batch).requires_grad_()
    patient = torch.randint(people, (batch,), generator=torch.Generator().manual_seed(seed))
    tau = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    pairs, groups = views * (views - 1) // 2, group_patients(patient)
    found = chunked_loss(z, tau, patient_strengths(groups, False, pairs, z.dtype), groups, at_once)
    assert alike(gradients(found, z, tau), gradients(patient_nce(z, patient, tau, impl="reference"), z, tau))
    found = chunked_loss(z, tau, plain_strengths(batch, pairs, z), None, at_once)
    assert alike(gradients(found, z, tau), gradients(nt_xent(z, tau, "reference"), z, tau))


@losses
def test_no_matrix_of_the_batch_is_kept_for_the_backward_pass(name):
    """A chunk that autograd keeps is a chunk for nothing: all of them together are the matrix."""
    kept = []
    z = embeddings(0, 3, 200).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda one: kept.append(one.numel()) or one, lambda one: one):
        loss_of(name, "chunked", z, torch.arange(200) % 150)
    assert max(kept) == z.numel() < 200 * 200
    assert sum(kept) < 200 * 200


@losses
def test_a_second_derivative_is_refused(name):
    """It would be zero, silently, since the backward pass computes chunks again without a graph."""
    z = embeddings(0, 2, 4).requires_grad_()
    (gradient,) = torch.autograd.grad(loss_of(name, "chunked", z, torch.arange(4)), z, create_graph=True)
    with pytest.raises(RuntimeError, match="has a first derivative only"):
        gradient.sum().backward()


@losses
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # Dynamo does, on its own account
def test_a_compiled_step_has_the_same_loss_and_gradient(name):
    """torch.compile goes through the chunks, in one graph."""
    z, patient = embeddings(0, 2, 7), torch.arange(7) % 5

    def step(z):
        return loss_of(name, "chunked", z, patient)

    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    leaf, other = z.clone().requires_grad_(), z.clone().requires_grad_()
    assert alike(gradients(compiled(leaf), leaf), gradients(step(other), other))


@losses
def test_a_backward_pass_under_autocast_is_not_short(name):
    """Whoever leaves autocast on for the whole step gets the same gradient."""
    z, patient = embeddings(0, 2, 9, dtype=torch.float32).requires_grad_(), torch.arange(9) % 5
    (expected,) = torch.autograd.grad(loss_of(name, "chunked", z, patient), z)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (found,) = torch.autograd.grad(loss_of(name, "chunked", z, patient), z)
    assert torch.equal(found, expected)


@losses
@pytest.mark.parametrize("impl", ["reference", "chunked"])
def test_a_nan_reaches_the_loss(name, impl):
    """A run that went wrong must not look well."""
    z = embeddings(0, 2, 5)
    z[1, 3, 2] = torch.nan
    assert loss_of(name, impl, z, torch.arange(5)).isnan()


@losses
@pytest.mark.parametrize("impl", ["reference", "chunked"])
def test_each_implementation_keeps_the_promises_of_a_loss(name, impl):
    offer = OFFERS[name]
    assert failures(checks_of(offer, options=offer.options(impl=impl))) == {}
