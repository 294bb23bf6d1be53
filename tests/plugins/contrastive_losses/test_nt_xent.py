"""NT-Xent against equation 1 of SimCLR, written in loops."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_core.testing import checks_of, failures
from clocs_plugins.contrastive_losses import NTXentOptions, clocs_losses
from clocs_plugins.contrastive_losses.nt_xent import nt_xent

seeds = st.integers(0, 2**31)
impls = pytest.mark.parametrize("impl", ["reference", "chunked"])
quick = settings(max_examples=20)


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return dot / lengths if lengths > 0 else 0.0


def loss_of_anchor(everybody, anchor, partner, tau):
    denominator = 0.0
    for k, other in enumerate(everybody):
        if k != anchor:
            denominator += math.exp(cosine(everybody[anchor], other) / tau)
    return -math.log(math.exp(cosine(everybody[anchor], everybody[partner]) / tau) / denominator)


def loss_of_pair(first, second, tau):
    everybody, batch = [*first, *second], len(first)
    total = 0.0
    for i in range(batch):
        total += loss_of_anchor(everybody, i, batch + i, tau) + loss_of_anchor(everybody, batch + i, i, tau)
    return total / (2 * batch)


def oracle(views, tau):
    pairs = [loss_of_pair(a, b, tau) for a, b in combinations(views.tolist(), 2)]
    return sum(pairs) / len(pairs)


def embeddings(seed, views, batch, dim=5, dtype=torch.float64):
    return torch.randn(views, batch, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@impls
@pytest.mark.parametrize("views", [2, 3, 4])
@pytest.mark.parametrize("batch", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("tau", [0.1, 1.3])
def test_the_loss_is_equation_1(batch, views, tau, impl):
    """A wrong partner, or an anchor that is compared with itself, still trains, only worse."""
    z = embeddings(batch, views, batch)
    loss = nt_xent(z, tau, impl)
    assert loss.shape == ()
    assert loss.dtype == torch.float64
    assert loss.item() == pytest.approx(oracle(z, tau), rel=1e-12, abs=1e-12)


@impls
@pytest.mark.parametrize(("views", "batch"), [(2, 1), (2, 4), (3, 3)])
def test_the_gradient_is_that_of_the_loss_in_embeddings_and_temperature(views, batch, impl):
    """Normalisation is part of the loss, and what is left out of a sum must not leave a NaN behind."""
    z = embeddings(1, views, batch, dim=3).requires_grad_()
    tau = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z, tau: nt_xent(z, tau, impl), (z, tau))


@impls
def test_a_batch_of_one_has_nothing_to_learn(impl):
    """The last batch of an epoch can be that small: the loss is 0 and so is the gradient."""
    z = embeddings(0, 2, 1).requires_grad_()
    loss = nt_xent(z, 0.1, impl)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-14)
    assert z.grad.abs().max() < 1e-12


@impls
@pytest.mark.parametrize("views", [2, 3])
@pytest.mark.parametrize("batch", [1, 2, 5, 256])
@pytest.mark.parametrize("value", [1.0, 0.0])
def test_a_collapse_is_the_loss_of_a_guess_among_the_others(batch, views, value, impl):
    """All embeddings the same, or all zero: log(2K - 1), which is where a run that does not learn stands."""
    z = torch.full((views, batch, 4), value, requires_grad=True)
    loss = nt_xent(z, 0.1, impl)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2 * batch - 1), rel=1e-5, abs=1e-6)
    assert z.grad.isfinite().all()


def test_partners_that_agree_and_strangers_that_do_not_cost_nothing():
    """The best that can be reached, at orthogonal instances: log(1 + (2K - 2)·exp(-1/tau))."""
    z = torch.eye(6, dtype=torch.float64).expand(2, 6, 6)
    assert nt_xent(z, 0.1).item() == pytest.approx(math.log1p(10 * math.exp(-10)), rel=1e-9)


@given(seed=seeds, batch=st.integers(1, 9), views=st.integers(2, 4))
@quick
def test_what_does_not_matter_does_not_change_the_loss(seed, batch, views):
    """Order of the batch, order of the views, length of an embedding, and a rotation of all of them."""
    generator = torch.Generator().manual_seed(seed)
    z = embeddings(seed, views, batch)
    loss = nt_xent(z, 0.2).item()
    shuffled, viewed = torch.randperm(batch, generator=generator), torch.randperm(views, generator=generator)
    lengths = 10 ** (4 * torch.rand(views, batch, 1, generator=generator, dtype=torch.float64) - 2)
    rotation = torch.linalg.qr(embeddings(seed + 1, 1, 5)[0]).Q
    same = {
        "batch": nt_xent(z[:, shuffled], 0.2),
        "views": nt_xent(z[viewed], 0.2),
        "lengths": nt_xent(z * lengths, 0.2),
        "rotation": nt_xent(z @ rotation, 0.2),
    }
    assert {what: value.item() for what, value in same.items()} == pytest.approx(dict.fromkeys(same, loss), rel=1e-9)


@given(seed=seeds, batch=st.integers(2, 9))
@quick
def test_it_is_torchs_cross_entropy_over_the_others(seed, batch):
    """What a reader of other implementations expects, diagonal filled and partner as the target."""
    z = torch.nn.functional.normalize(embeddings(seed, 2, batch), dim=-1).flatten(0, 1)
    logits = (z @ z.T / 0.1).fill_diagonal_(-torch.inf)
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(2 * batch).roll(batch))
    assert nt_xent(z.view(2, batch, -1), 0.1).item() == pytest.approx(expected.item(), rel=1e-10)


@given(seed=seeds, views=st.integers(2, 5))
@quick
def test_the_gradient_reaches_every_instance_of_every_view(seed, views):
    """A view that is left out is encoded for nothing."""
    z = embeddings(seed, views, 6).requires_grad_()
    nt_xent(z, 0.5).backward()
    assert (z.grad.abs().amax(-1) > 1e-9).all()


@impls
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_an_embedding_of_zeros_is_similar_to_nothing_and_gets_no_gradient(dtype, impl):
    """A ReLU can silence a whole embedding; 0/0 would poison every weight of the encoder."""
    z = embeddings(2, 2, 4).to(dtype)
    z[0, 1] = 0
    z[:, 2] = 0
    z.requires_grad_()
    loss = nt_xent(z, 0.1, impl)
    loss.backward()
    assert loss.item() == pytest.approx(oracle(z.detach().double(), 0.1), rel=1e-5)
    assert z.grad.isfinite().all()
    assert (z.grad[0, 1] == 0).all()
    assert (z.grad[1, 1] != 0).any()


@impls
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_floats_are_reduced_in_float32(dtype, impl):
    """Only the embeddings are rounded; sums over the batch are not."""
    z = embeddings(4, 3, 64, dim=16).to(dtype)
    loss = nt_xent(z, 0.1, impl)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(nt_xent(z.double(), 0.1).item(), rel=2e-6)


@impls
def test_autocast_does_not_touch_the_loss(impl):
    """A training step under autocast would otherwise compute similarities with three digits."""
    z = embeddings(5, 2, 32, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = nt_xent(z, 0.1, impl)
    assert torch.equal(inside, nt_xent(z, 0.1, impl))


@impls
@pytest.mark.parametrize("tau", [0.01, 0.005])
def test_a_cold_softmax_does_not_overflow(tau, impl):
    """exp(1/0.005) is not a float32; the log-sum-exp form does not need it to be."""
    z = embeddings(6, 2, 16, dtype=torch.float32).requires_grad_()
    loss = nt_xent(z, tau, impl)
    loss.backward()
    assert loss.item() == pytest.approx(nt_xent(z.detach().double(), tau).item(), rel=1e-5)
    assert z.grad.isfinite().all()


@impls
def test_strided_views_give_the_same_loss(impl):
    """Encoders and gathers hand over transposed embeddings; only the values count."""
    z = embeddings(7, 3, 6)
    strided = z.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    assert nt_xent(strided, 0.1, impl).item() == pytest.approx(nt_xent(z, 0.1).item(), rel=1e-12)


@impls
def test_nothing_waits_for_the_device(impl):
    """A fake tensor has no values: reading one, or a shape made of values, raises. So would a CUDA graph."""
    with FakeTensorMode():
        z = torch.randn(3, 8, 4, requires_grad=True)
        tau = torch.full((), 0.1, requires_grad=True)
        nt_xent(z, tau, impl).backward()
        assert z.grad.shape == (3, 8, 4)
        assert tau.grad.shape == ()


@pytest.mark.parametrize(
    ("views", "tau", "message"),
    [
        (torch.zeros(1, 4, 3), 0.1, r"shape \(1, 4, 3\), expected .* at least two views"),
        (torch.zeros(4, 3), 0.1, r"shape \(4, 3\), expected \(view, batch, dim\)"),
        (torch.zeros(2, 0, 3), 0.1, "one instance"),
        (torch.zeros(2, 4, 3), 0.0, "temperature 0.0, expected a positive"),
        (torch.zeros(2, 4, 3), float("nan"), "temperature nan, expected a positive"),
    ],
)
def test_bad_input_is_refused_with_what_was_expected(views, tau, message):
    """Broadcasting would make a number of most of these."""
    with pytest.raises(ValueError, match=message):
        nt_xent(views, tau)


# ----------------------------------------------------------------------------------------------------------- the offers


def test_the_offered_loss_does_not_look_at_patients():
    """SimCLR "is blind to the notion of a patient", section 6 of the CLOCS paper; `-o temperature=…` reaches it."""
    _, offer = clocs_losses()
    z = embeddings(8, 2, 6)
    for patient in (torch.arange(6), torch.zeros(6, dtype=torch.int64)):
        assert torch.equal(offer.build(offer.options())(z, patient), nt_xent(z, 0.1))
        assert torch.equal(offer.build(offer.options(temperature=0.5))(z, patient), nt_xent(z, 0.5))


def test_the_offered_loss_keeps_the_promises_of_a_loss():
    _, offer = clocs_losses()
    assert failures(checks_of(offer)) == {}


@pytest.mark.parametrize("temperature", [0.0, -0.1, float("nan"), float("inf")])
def test_a_temperature_that_is_no_temperature_is_refused_at_once(temperature):
    """Before hours of preparation, not at the first step."""
    with pytest.raises(ValueError, match="temperature must be positive and finite, got"):
        NTXentOptions(temperature=temperature)
