"""Patient-NCE as the authors released it, against that formula written in loops, and beside the paper's."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_core import SettingsError
from clocs_core.settings.options import structure
from clocs_core.testing import checks_of, failures
from clocs_plugins.contrastive_losses import PatientNCEOptions, clocs_losses
from clocs_plugins.contrastive_losses.patient_nce import patient_nce

seeds = st.integers(0, 2**31)
impls = pytest.mark.parametrize("impl", ["reference", "chunked"])
quick = settings(max_examples=20)


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return dot / lengths if lengths > 0 else 0.0


def mean_negative_log(shares):
    return -sum(math.log(share) for share in shares) / len(shares)


def oracle(views, patient, tau):
    """The last two views only: row and column softmax of the diagonal, rows above it, columns below it."""
    views, patient = views.tolist(), patient.tolist()
    batch = range(len(patient))
    similarity = [[math.exp(cosine(a, b) / tau) for b in views[-1]] for a in views[-2]]
    in_row = [[similarity[i][k] / sum(similarity[i]) for k in batch] for i in batch]
    in_column = [[similarity[i][k] / sum(similarity[j][k] for j in batch) for k in batch] for i in batch]
    above = [(i, k) for i in batch for k in batch if i < k and patient[i] == patient[k]]
    below = [(i, k) for i in batch for k in batch if i > k and patient[i] == patient[k]]
    terms = [mean_negative_log([in_row[i][i] for i in batch]), mean_negative_log([in_column[i][i] for i in batch])]
    if above:
        terms.append(mean_negative_log([in_row[i][k] for i, k in above]))
    if below:
        terms.append(mean_negative_log([in_column[i][k] for i, k in below]))
    pairs = sum(1 for a in range(len(views)) for b in range(a))
    return sum(terms) / (len(terms) * pairs)


def embeddings(seed, views, batch, dim=5, dtype=torch.float64):
    return torch.randn(views, batch, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def released(z, patient, tau=0.2, impl="reference"):
    """The loss without its warning, which is tested by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return patient_nce(z, torch.as_tensor(patient), tau, variant="released", impl=impl)


PATIENTS = {
    "batch of one": [7],
    "two, none repeated": [0, 1],
    "two of one patient": [3, 3],
    "odd, none repeated": [5, 2, 9, 0, 4],
    "one repeated": [5, 2, 9, 2, 4, 1, 0],
    "many repeated": [0, 1, 0, 1, 2, 2, 3, 0, 4],
    "only repeated": [1, 0, 1, 2, 0, 2],
    "all the same": [6, 6, 6, 6, 6],
    "equal in their low 32 bits": [2**32 + 1, 1, 2**33 + 1, 1],
}


@impls
@pytest.mark.parametrize("views", [2, 3, 8])
@pytest.mark.parametrize("case", PATIENTS)
@pytest.mark.parametrize("tau", [0.1, 1.3])
def test_the_loss_is_the_released_formula(case, views, tau, impl):
    """A wrong half, a wrong direction or a wrong number of terms would make numbers that nobody ever published."""
    patient = torch.tensor(PATIENTS[case])
    z = embeddings(views, views, len(patient))
    loss = released(z, patient, tau, impl)
    assert loss.shape == ()
    assert loss.dtype == torch.float64
    assert loss.item() == pytest.approx(oracle(z, patient, tau), rel=1e-12, abs=1e-12)


@impls
@pytest.mark.parametrize("views", [2, 3])
@pytest.mark.parametrize("case", ["odd, none repeated", "one repeated", "all the same"])
def test_the_gradient_is_that_of_the_loss_in_embeddings_and_temperature(case, views, impl):
    """Where no patient comes twice, a mean over nothing must not leave a NaN behind."""
    patient = torch.tensor(PATIENTS[case])
    z = embeddings(1, views, len(patient), dim=3).requires_grad_()
    tau = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z, tau: released(z, patient, tau, impl), (z, tau))


@given(seed=seeds, views=st.integers(3, 6), repeated=st.booleans())
@quick
def test_the_gradient_reaches_the_last_two_views_and_no_other(seed, views, repeated):
    """The departure that matters most: of 24 views, 22 are encoded for nothing."""
    z = embeddings(seed, views, 6).requires_grad_()
    released(z, [0, 1, 2, 0, 3, 4] if repeated else range(6)).backward()
    assert (z.grad[:-2] == 0).all()
    assert (z.grad[-2:].abs().amax(-1) > 1e-9).all()


@given(seed=seeds, views=st.integers(3, 6))
@quick
def test_more_views_only_make_the_loss_smaller(seed, views):
    """It is divided by the number of pairs, though one of them counts."""
    z, patient = embeddings(seed, views, 5), [0, 1, 0, 2, 2]
    pairs = views * (views - 1) // 2
    assert released(z, patient).item() == pytest.approx(released(z[-2:], patient).item() / pairs, rel=1e-10)


# --------------------------------------------------------------------------------------------------- beside the paper's


def test_it_is_no_multiple_of_the_papers_loss():
    """A batch of six: were it one, Adam would not notice, and nobody would need two formulas."""
    patient = torch.tensor([0, 1, 2, 0, 1, 0])
    found = []
    for seed in range(3):
        z = embeddings(seed, 2, 6).requires_grad_()
        paper = patient_nce(z, patient, 0.1)
        (of_paper,) = torch.autograd.grad(paper, z)
        loss = released(z, patient, 0.1)
        (of_released,) = torch.autograd.grad(loss, z)
        found.append((paper / loss).item())
        assert torch.cosine_similarity(of_paper.flatten(), of_released.flatten(), dim=0) < 0.999
    assert max(found) - min(found) > 0.01


@given(seed=seeds, batch=st.integers(1, 7))
@quick
def test_without_repeats_two_views_cost_half_of_the_papers_loss(seed, batch):
    """The mean of the same two terms; only the sum became a mean."""
    z, patient = embeddings(seed, 2, batch), torch.arange(batch)
    assert released(z, patient).item() == pytest.approx(patient_nce(z, patient, 0.2).item() / 2, rel=1e-10, abs=1e-12)


@given(seed=seeds, batch=st.integers(2, 9))
@quick
def test_a_batch_and_its_reverse_cost_a_quarter_of_the_papers_loss_on_average(seed, batch):
    """What one order leaves out the other has: over shuffled batches, two views are trained as in the paper."""
    z, patient = embeddings(seed, 2, batch), torch.arange(batch) // 2
    both = released(z, patient) + released(z.flip(1), patient.flip(0))
    assert both.item() / 2 == pytest.approx(patient_nce(z, patient, 0.2).item() / 4, rel=1e-10)


# ------------------------------------------------------------------------------------------ what matters, and what not


@given(seed=seeds, batch=st.integers(1, 9), views=st.integers(2, 4), people=st.integers(1, 6))
@quick
def test_what_does_not_matter_does_not_change_the_loss(seed, batch, views, people):
    """Order of the last two views, length of an embedding, names of patients, and the order of the patients."""
    generator = torch.Generator().manual_seed(seed)
    z = embeddings(seed, views, batch)
    patient = torch.randint(people, (batch,), generator=generator)
    loss = released(z, patient).item()
    lengths = 10 ** (4 * torch.rand(views, batch, 1, generator=generator, dtype=torch.float64) - 2)
    renamed = torch.randperm(people, generator=generator)[patient] * 1_000_003 - 17
    grouped = torch.sort(renamed, stable=True).indices  # each patient's instances stay in their order
    same = {
        "views": released(torch.cat([z[:-2], z[-2:].flip(0)]), patient),
        "lengths": released(z * lengths, patient),
        "names": released(z, renamed),
        "patients": released(z[:, grouped], patient[grouped]),
    }
    assert {what: value.item() for what, value in same.items()} == pytest.approx(dict.fromkeys(same, loss), rel=1e-9)


@given(seed=seeds, views=st.integers(2, 4))
@quick
def test_the_order_of_the_instances_of_a_patient_changes_the_loss(seed, views):
    """Only the one that stands first is compared with all others: known, documented, and absent from the paper's."""
    z, patient = embeddings(seed, views, 6), torch.tensor([0, 1, 2, 0, 3, 4])
    swapped = z[:, [3, 1, 2, 0, 4, 5]]
    assert abs(released(z, patient) - released(swapped, patient)) > 1e-9
    assert patient_nce(swapped, patient, 0.2).item() == pytest.approx(patient_nce(z, patient, 0.2).item(), rel=1e-10)


@given(seed=seeds)
@quick
def test_which_views_are_last_changes_the_loss(seed):
    """With leads for views, the names of two leads decide what is learnt."""
    z, patient = embeddings(seed, 4, 6), [0, 1, 2, 0, 3, 4]
    assert abs(released(z, patient) - released(z.roll(1, 0), patient)) > 1e-9


# -------------------------------------------------------------------------------------------------------- odd values


@impls
@pytest.mark.parametrize("patient", [[0, 1, 2, 3], [0, 1, 0, 0]])
def test_an_embedding_of_zeros_is_similar_to_nothing_and_gets_no_gradient(patient, impl):
    """There the released code divides zero by zero; a faithful NaN would help nobody."""
    z = embeddings(2, 2, 4, dtype=torch.float32)
    z[0, 1] = 0
    z[:, 2] = 0
    z.requires_grad_()
    loss = released(z, patient, impl=impl)
    loss.backward()
    assert loss.item() == pytest.approx(oracle(z.detach().double(), torch.tensor(patient), 0.2), rel=1e-5)
    assert z.grad.isfinite().all()
    assert (z.grad[0, 1] == 0).all()
    assert (z.grad[1, 1] != 0).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_floats_are_reduced_in_float32_autocast_or_not(dtype):
    """Only the embeddings are rounded; sums over the batch are not."""
    z, patient = embeddings(4, 2, 64, dim=16).to(dtype), torch.arange(64) % 50
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = released(z, patient)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(released(z.double(), patient).item(), rel=2e-6)


@impls
@pytest.mark.parametrize("views", [2, 3])
def test_nothing_waits_for_the_device(views, impl):
    """How many terms there are depends on the batch; asking for it would stop the GPU in every step."""
    with FakeTensorMode():
        z = torch.randn(views, 8, 4, requires_grad=True)
        tau = torch.full((), 0.1, requires_grad=True)
        released(z, torch.randint(4, (8,)), tau, impl).backward()
        assert z.grad.shape == (views, 8, 4)
        assert tau.grad.shape == ()


# ------------------------------------------------------------------------------------------- the warning and the option


@pytest.mark.parametrize(
    ("views", "message"),
    [(3, "trains views 1 and 2 of 0 to 2 only, which is one of 3 pairs"), (24, "views 22 and 23 .* one of 276 pairs")],
)
def test_more_than_two_views_are_warned_of(views, message):
    """Nothing else in a run shows that most views are not trained."""
    with pytest.warns(UserWarning, match=f"{message}.*formula=paper to train all pairs") as found:
        patient_nce(embeddings(0, views, 4), torch.arange(4), 0.1, variant="released")
    assert [one.filename for one in found] == [__file__]  # the caller, so that Python tells it once for each


def test_a_loop_is_warned_once():
    """A warning for each of a million steps would hide all others."""
    z = embeddings(0, 3, 4)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(5):
            patient_nce(z, torch.arange(4), 0.1, variant="released")
    assert len(found) == 1


def test_two_views_are_nothing_to_warn_of():
    """CMSC has one pair, and it is the last. Warnings are errors here."""
    patient_nce(embeddings(0, 2, 4), torch.arange(4), 0.1, variant="released")


def test_the_warning_does_not_break_a_compiled_step():
    """torch.compile cannot trace a warning: it would cut the step in two, or refuse where it must be one graph."""
    z, patient = embeddings(0, 3, 4), torch.tensor([0, 1, 1, 2])
    compiled = torch.compile(lambda z: patient_nce(z, patient, 0.1, "released"), backend="eager", fullgraph=True)
    assert compiled(z).item() == pytest.approx(released(z, patient, 0.1).item(), rel=1e-12)


def test_an_unknown_variant_is_refused():
    """A misspelt one must not quietly be the paper's."""
    with pytest.raises(ValueError, match="got the variant 'release', expected 'paper' or 'released'"):
        patient_nce(embeddings(0, 2, 4), torch.arange(4), 0.1, variant="release")
    with pytest.raises(SettingsError, match=r"formula.*expected one of paper, released, got 'release'"):
        structure(PatientNCEOptions, {"formula": "release"}, "loss")


def test_the_option_formula_chooses_the_loss():
    """`-o formula=released` reaches it, and nothing else does."""
    offer, _ = clocs_losses()
    z, patient = embeddings(8, 2, 6), torch.tensor([0, 1, 1, 2, 0, 3])
    assert torch.equal(offer.build(offer.options())(z, patient), patient_nce(z, patient, 0.1))
    chosen = offer.build(offer.options(formula="released", temperature=0.5))
    assert torch.equal(chosen(z, patient), released(z, patient, 0.5))


def test_of_the_rules_for_losses_it_breaks_the_one_about_order():
    """All others hold, so that it can be trained with as safely as the paper's."""
    offer, _ = clocs_losses()
    broken = failures(checks_of(offer, options=offer.options(formula="released")))
    assert list(broken) == ["order-of-batch"]
