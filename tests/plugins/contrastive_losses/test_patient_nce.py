"""Patient-NCE against equations 1 to 4 of the paper, written in loops."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_plugins.contrastive_losses import PatientNCEOptions, clocs_losses
from clocs_plugins.contrastive_losses.patient_nce import patient_nce

seeds = st.integers(0, 2**31)
impls = pytest.mark.parametrize("impl", ["reference", "chunked"])
quick = settings(max_examples=20)


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return dot / lengths if lengths > 0 else 0.0


def log_softmax_at(view_a, view_b, i, k, tau):
    denominator = sum(math.exp(cosine(view_a[i], other) / tau) for other in view_b)
    return math.log(math.exp(cosine(view_a[i], view_b[k]) / tau) / denominator)


def diagonal(view_a, view_b, tau):
    terms = [log_softmax_at(view_a, view_b, i, i, tau) for i in range(len(view_a))]
    return -sum(terms) / len(terms)


def off_diagonal(view_a, view_b, patient, tau):
    terms = []
    for i in range(len(view_a)):
        for k in range(len(view_b)):
            if i != k and patient[i] == patient[k]:
                terms.append(log_softmax_at(view_a, view_b, i, k, tau))
    return -sum(terms) / len(terms) if terms else 0.0


def oracle(views, patient, tau):
    views, patient = views.tolist(), patient.tolist()
    pairs = []
    for a, b in combinations(views, 2):
        directions = diagonal(a, b, tau) + diagonal(b, a, tau)
        pairs.append(directions + off_diagonal(a, b, patient, tau) + off_diagonal(b, a, patient, tau))
    return sum(pairs) / len(pairs)


def embeddings(seed, views, batch, dim=5, dtype=torch.float64):
    return torch.randn(views, batch, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


PATIENTS = {
    "batch of one": [7],
    "two, none repeated": [0, 1],
    "two of one patient": [3, 3],
    "none repeated": [5, 2, 9, 0, 4],
    "one repeated": [5, 2, 9, 2, 4, 1, 0],
    "three of one": [1, 0, 1, 2, 1],
    "many repeated": [0, 1, 0, 1, 2, 2, 3, 0, 4],
    "all the same": [6, 6, 6, 6, 6],
    "negative ids": [-1, -2, -1, 4],
    "equal in their low 32 bits": [2**32 + 1, 1, 2**33 + 1, 1],
}


@impls
@pytest.mark.parametrize("views", [2, 3, 4])
@pytest.mark.parametrize("case", PATIENTS)
@pytest.mark.parametrize("tau", [0.1, 1.3])
def test_the_loss_is_the_papers_equations(case, views, tau, impl):
    """The specification of every faster version: a wrong term, weight or pair shows here."""
    patient = torch.tensor(PATIENTS[case])
    z = embeddings(views, views, len(patient))
    loss = patient_nce(z, patient, tau, impl=impl)
    assert loss.shape == ()
    assert loss.dtype == torch.float64
    assert loss.item() == pytest.approx(oracle(z, patient, tau), rel=1e-12, abs=1e-12)


@impls
@pytest.mark.parametrize("case", ["none repeated", "one repeated", "all the same"])
def test_the_gradient_is_that_of_the_loss_in_embeddings_and_temperature(case, impl):
    """Normalisation is part of the loss, and a learnable temperature must learn the right thing."""
    patient = torch.tensor(PATIENTS[case])
    z = embeddings(1, 3, len(patient), dim=3).requires_grad_()
    tau = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z, tau: patient_nce(z, patient, tau, impl=impl), (z, tau))


@impls
def test_a_batch_of_one_has_nothing_to_learn(impl):
    """The last batch of an epoch can be that small: the loss is 0 and so is the gradient."""
    z = embeddings(0, 2, 1).requires_grad_()
    loss = patient_nce(z, torch.tensor([0]), 0.1, impl=impl)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-14)
    assert z.grad.abs().max() < 1e-12


@given(seed=seeds, batch=st.integers(2, 9))
@quick
def test_without_repeats_it_is_symmetric_info_nce(seed, batch):
    """What a reader who knows SimCLR or CLIP expects: the sum of both cross-entropies."""
    a, b = torch.nn.functional.normalize(embeddings(seed, 2, batch), dim=-1)
    logits, target = a @ b.T / 0.1, torch.arange(batch)
    expected = torch.nn.functional.cross_entropy(logits, target) + torch.nn.functional.cross_entropy(logits.T, target)
    assert patient_nce(torch.stack([a, b]), target, 0.1).item() == pytest.approx(expected.item(), rel=1e-10)


@given(seed=seeds, batch=st.integers(1, 9), views=st.integers(2, 4), people=st.integers(1, 6))
@quick
def test_what_does_not_matter_does_not_change_the_loss(seed, batch, views, people):
    """Order of the batch, order of the views, length of an embedding, and how patients are numbered."""
    generator = torch.Generator().manual_seed(seed)
    z = embeddings(seed, views, batch)
    patient = torch.randint(people, (batch,), generator=generator)
    loss = patient_nce(z, patient, 0.2).item()
    shuffled, viewed = torch.randperm(batch, generator=generator), torch.randperm(views, generator=generator)
    lengths = 10 ** (4 * torch.rand(views, batch, 1, generator=generator, dtype=torch.float64) - 2)
    renamed = torch.randperm(people, generator=generator)[patient] * 1_000_003 - 17
    same = {
        "batch": patient_nce(z[:, shuffled], patient[shuffled], 0.2),
        "views": patient_nce(z[viewed], patient, 0.2),
        "lengths": patient_nce(z * lengths, patient, 0.2),
        "names": patient_nce(z, renamed, 0.2),
    }
    assert {what: value.item() for what, value in same.items()} == pytest.approx(dict.fromkeys(same, loss), rel=1e-9)


@given(seed=seeds, views=st.integers(2, 5))
@quick
def test_the_gradient_reaches_every_instance_of_every_view(seed, views):
    """The published implementation trained on the last pair of views only; nothing else in the run showed it."""
    z = embeddings(seed, views, 6).requires_grad_()
    patient_nce(z, torch.tensor([0, 1, 2, 0, 3, 4]), 0.5).backward()
    assert (z.grad.abs().amax(-1) > 1e-9).all()


@given(seed=seeds, views=st.integers(3, 5))
@quick
def test_many_views_are_the_mean_of_their_pairs(seed, views):
    """So that the loss means the same with 2 leads and with 12."""
    z, patient = embeddings(seed, views, 5), torch.tensor([0, 1, 0, 2, 2])
    pairs = [patient_nce(torch.stack(pair), patient, 0.1).item() for pair in combinations(z, 2)]
    assert patient_nce(z, patient, 0.1).item() == pytest.approx(sum(pairs) / len(pairs), rel=1e-10)


@impls
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("patient", [[0, 1, 2, 3], [0, 1, 0, 0]])
def test_an_embedding_of_zeros_is_similar_to_nothing_and_gets_no_gradient(dtype, patient, impl):
    """A ReLU can silence a whole embedding; 0/0 would poison every weight of the encoder."""
    z = embeddings(2, 2, 4, dtype=torch.float64).to(dtype)
    z[0, 1] = 0
    z[:, 2] = 0
    z.requires_grad_()
    loss = patient_nce(z, torch.tensor(patient), 0.1, impl=impl)
    loss.backward()
    assert loss.item() == pytest.approx(oracle(z.detach().double(), torch.tensor(patient), 0.1), rel=1e-5)
    assert z.grad.isfinite().all()
    assert (z.grad[0, 1] == 0).all()
    assert (z.grad[1, 1] != 0).any()


@impls
def test_all_embeddings_zero_is_the_loss_of_a_guess(impl):
    """The worst collapse is still a number, so that a run can report it."""
    z = torch.zeros(2, 8, 4, requires_grad=True)
    loss = patient_nce(z, torch.arange(8) // 2, 0.1, impl=impl)
    loss.backward()
    assert loss.item() == pytest.approx(4 * math.log(8), rel=1e-6)
    assert (z.grad == 0).all()


@impls
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_floats_are_reduced_in_float32(dtype, impl):
    """Only the embeddings are rounded; sums over the batch are not."""
    z = embeddings(4, 3, 64, dim=16).to(dtype)
    patient = torch.arange(64) % 50
    loss = patient_nce(z, patient, 0.1, impl=impl)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(patient_nce(z.double(), patient, 0.1).item(), rel=2e-6)


@impls
def test_autocast_does_not_touch_the_loss(impl):
    """A training step under autocast would otherwise compute similarities with three digits."""
    z, patient = embeddings(5, 2, 32, dtype=torch.float32), torch.arange(32) % 20
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = patient_nce(z, patient, 0.1, impl=impl)
    assert torch.equal(inside, patient_nce(z, patient, 0.1, impl=impl))


@impls
@pytest.mark.parametrize("tau", [0.01, 0.005])
def test_a_cold_softmax_does_not_overflow(tau, impl):
    """exp(1/0.005) is not a float32; the log-sum-exp form does not need it to be."""
    z = embeddings(6, 2, 16, dtype=torch.float32).requires_grad_()
    loss = patient_nce(z, torch.arange(16) % 10, tau, impl=impl)
    loss.backward()
    expected = patient_nce(z.detach().double(), torch.arange(16) % 10, tau).item()
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert z.grad.isfinite().all()


@impls
def test_strided_views_give_the_same_loss(impl):
    """Encoders and gathers hand over transposed embeddings; only the values count."""
    z, patient = embeddings(7, 3, 6), torch.tensor([0, 1, 1, 2, 0, 3])
    strided = z.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    assert patient_nce(strided, patient, 0.1, impl=impl).item() == pytest.approx(
        patient_nce(z, patient, 0.1).item(), rel=1e-12
    )


@impls
def test_nothing_waits_for_the_device(impl):
    """A fake tensor has no values: reading one, or a shape made of values, raises. So would a CUDA graph."""
    with FakeTensorMode():
        z = torch.randn(3, 8, 4, requires_grad=True)
        tau = torch.full((), 0.1, requires_grad=True)
        patient_nce(z, torch.randint(4, (8,)), tau, impl=impl).backward()
        assert z.grad.shape == (3, 8, 4)
        assert tau.grad.shape == ()


@pytest.mark.parametrize(
    ("views", "patient", "tau", "message"),
    [
        (torch.zeros(1, 4, 3), torch.arange(4), 0.1, r"shape \(1, 4, 3\), expected .* at least two views"),
        (torch.zeros(4, 3), torch.arange(4), 0.1, r"shape \(4, 3\), expected \(view, batch, dim\)"),
        (torch.zeros(2, 0, 3), torch.arange(0), 0.1, "one instance"),
        (torch.zeros(2, 4, 3), torch.arange(3), 0.1, r"ids of shape \(3,\), expected \(4,\)"),
        (torch.zeros(2, 4, 3), torch.zeros(2, 4).long(), 0.1, r"ids of shape \(2, 4\), expected \(4,\)"),
        (torch.zeros(2, 4, 3), torch.arange(4, device="meta"), 0.1, "ids on meta, expected cpu, as the embeddings"),
        (torch.zeros(2, 4, 3), torch.arange(4), torch.ones(4), r"temperature of shape \(4,\), expected one element"),
        (torch.zeros(2, 4, 3), torch.zeros(4), 0.1, "ids of type torch.float32, expected integers"),
        (torch.zeros(2, 4, 3), torch.arange(4), 0.0, "temperature 0.0, expected a positive"),
        (torch.zeros(2, 4, 3), torch.arange(4), -1, "temperature -1, expected a positive"),
        (torch.zeros(2, 4, 3), torch.arange(4), float("nan"), "temperature nan, expected a positive"),
    ],
)
def test_bad_input_is_refused_with_what_was_expected(views, patient, tau, message):
    """Broadcasting would make a number of most of these."""
    with pytest.raises(ValueError, match=message):
        patient_nce(views, patient, tau)


def test_the_offered_loss_has_the_papers_temperature():
    """`-o temperature=…` reaches the loss, and its default is the paper's."""
    offer, _ = clocs_losses()
    z, patient = embeddings(8, 2, 6), torch.tensor([0, 1, 1, 2, 0, 3])
    assert torch.equal(offer.build(offer.options())(z, patient), patient_nce(z, patient, 0.1))
    assert torch.equal(offer.build(offer.options(temperature=0.5))(z, patient), patient_nce(z, patient, 0.5))


@pytest.mark.parametrize("temperature", [0.0, -0.1, float("nan"), float("inf")])
def test_a_temperature_that_is_no_temperature_is_refused_at_once(temperature):
    """Before hours of preparation, not at the first step."""
    with pytest.raises(ValueError, match="temperature must be positive and finite, got"):
        PatientNCEOptions(temperature=temperature)
