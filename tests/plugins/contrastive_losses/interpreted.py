"""The kernels, run as NumPy by Triton's interpreter, against the plain losses in float64.

test_fused.py runs this file in processes of its own: TRITON_INTERPRET must be set before the kernels are imported.
"""

# ruff: noqa: E402  what is imported depends on the variable

from __future__ import annotations

import os

assert os.environ["TRITON_INTERPRET"] == "1"

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_plugins.contrastive_losses import launches
from clocs_plugins.contrastive_losses.fused import contrast
from clocs_plugins.contrastive_losses.launches import NT_XENT, PAPER, RELEASED
from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce
from clocs_plugins.contrastive_losses.shapes import Shapes, Tile

WIDE = Shapes(Tile(16, 32, 4, 2), Tile(32, 16, 4, 2), parts=2)
TALL = Shapes(Tile(32, 16, 4, 2), Tile(16, 32, 4, 2), parts=3)
ONE = Shapes(Tile(16, 16, 4, 2), Tile(16, 16, 4, 2), parts=1)
TOLERANCE = {False: (1e-4, 2e-3), True: (1e-6, 2e-6)}  # two halves or not: of the loss, of the gradient


pytestmark = [
    pytest.mark.filterwarnings("ignore:Patient-NCE as released"),  # of three views it trains two
]


@pytest.fixture(autouse=True)
def poison():
    """Memory that was not written is NaN, so that reading it shows."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def embeddings(views, batch, dim, dtype=torch.float32):
    generator = torch.Generator().manual_seed(views * 1000 + batch)
    return torch.randn(views, batch, dim, generator=generator).to(dtype)


def kernels(z, patient, tau, kind, two, shapes):
    pairs = len(z) * (len(z) - 1) // 2
    views = z[-2:] if kind == RELEASED else z
    return contrast(views, patient, tau, kind=kind, pairs=pairs, two=two, shapes=shapes)


def plain(z, patient, tau, kind):
    if kind == NT_XENT:
        return nt_xent(z, tau, "reference")
    return patient_nce(z, patient, tau, "released" if kind == RELEASED else "paper", "reference")


def agree(z, patient, kind=PAPER, two=False, shapes=WIDE, tau=0.1, outer=-2.5, looser=1.0):
    """Loss and gradients in z and tau, times a number, are those of the plain version in float64."""
    z, exact = z.detach().requires_grad_(), z.detach().double().requires_grad_()
    ours, theirs = (torch.tensor(tau, dtype=one.dtype, requires_grad=True) for one in (z.float(), exact))
    loss = kernels(z, None if kind == NT_XENT else patient, ours, kind, two, shapes)
    expected = plain(exact, patient, theirs, kind)
    (loss * outer).backward()
    (expected * outer).backward()
    of_loss, of_gradient = (looser * tolerance for tolerance in TOLERANCE[two])
    assert (loss.dtype, loss.shape) == (torch.float32, ())
    assert loss.item() == pytest.approx(expected.item(), rel=of_loss, abs=5 * of_loss)
    assert (z.grad.dtype, z.grad.shape) == (z.dtype, z.shape)
    assert (z.grad.double() - exact.grad).norm() <= of_gradient * exact.grad.norm() + 1e-6
    assert ours.grad.item() == pytest.approx(theirs.grad.item(), rel=of_gradient, abs=20 * of_gradient)
    return z.grad


PATIENTS = {
    "some repeated": lambda batch: torch.arange(batch) % max(1, batch - 4),
    "none repeated": lambda batch: torch.arange(batch) * 7 - 20,
    "all the same": lambda batch: torch.full((batch,), -3),
    "equal in their low 32 bits": lambda batch: torch.arange(batch) % 3 * 2**32 - 2**40,
}
KINDS = {"paper": PAPER, "released": RELEASED, "nt-xent": NT_XENT}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
halves = pytest.mark.parametrize("two", [False, True], ids=["fp16", "near-fp32"])


# ------------------------------------------------------------------------------------------------ sizes that miss tiles


@kinds
@halves
@pytest.mark.parametrize(
    ("views", "batch", "dim", "shapes"),
    [(2, 37, 20, WIDE), (3, 17, 33, TALL), (2, 1, 5, ONE)],
    ids=["2 views of 37 x 20", "3 views of 17 x 33", "a batch of one"],
)
def test_sizes_that_no_tile_divides(views, batch, dim, shapes, kind, two):
    """Rows and columns of padding must count for nothing, in sums and in gradients."""
    agree(embeddings(views, batch, dim), PATIENTS["some repeated"](batch), kind, two, shapes)


@pytest.mark.parametrize("kind", [PAPER, NT_XENT], ids=["paper", "nt-xent"])
@halves
def test_sizes_that_tiles_divide(kind, two):
    """Then nothing is padded, and one launch makes the gradient of a few rows."""
    agree(embeddings(2, 32, 32), PATIENTS["some repeated"](32), kind, two, ONE)


@pytest.mark.parametrize("kind", [PAPER, NT_XENT], ids=["paper", "nt-xent"])
def test_sizes_whose_gradient_is_computed_where_it_will_stay(kind, monkeypatch):
    """Of tiles that leave no registers for what comes next, and of which nothing is padded."""
    monkeypatch.setattr(launches, "ROOM", 0)
    agree(embeddings(2, 32, 32), PATIENTS["some repeated"](32), kind, True, ONE)


@pytest.mark.parametrize("kind", [PAPER, NT_XENT], ids=["paper", "nt-xent"])
def test_long_embeddings(kind):
    """320 dimensions are packed as 512."""
    agree(embeddings(2, 18, 320), PATIENTS["some repeated"](18), kind, True, ONE)


def test_24_views():
    """All leads twice: 276 pairs of views in one launch."""
    agree(embeddings(24, 3, 20), torch.tensor([0, 1, 0]), PAPER, False, ONE)


# ------------------------------------------------------------------------------------------------------------- patients


@pytest.mark.parametrize("kind", [PAPER, RELEASED], ids=["paper", "released"])
@pytest.mark.parametrize("case", PATIENTS)
def test_patients(case, kind):
    """Ids are compared as 64 bits, whatever their sign, and no patient twice is no division by zero."""
    agree(embeddings(2, 19, 16), PATIENTS[case](19), kind, True, ONE)


@pytest.mark.parametrize("kind", [PAPER, RELEASED], ids=["paper", "released"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_ids_of_large_batches_are_sorted_by_torch(kind, dtype, monkeypatch):
    """Comparing all of them would take longer there. Ids may be a column of something else."""
    monkeypatch.setattr(launches, "COUNTED", 4)
    patient = torch.stack([PATIENTS["some repeated"](21), torch.arange(21)], 1).to(dtype)[:, 0]
    agree(embeddings(2, 21, 16), patient, kind, True, ONE)


def test_ids_that_do_not_lie_side_by_side():
    """A batch's column of ids is a strided tensor."""
    patient = torch.stack([PATIENTS["some repeated"](21), torch.arange(21)], 1)[:, 0]
    agree(embeddings(2, 21, 16), patient, PAPER, True, ONE)


# --------------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", [PAPER, NT_XENT], ids=["paper", "nt-xent"])
def test_short_floats_are_read_as_they_are(dtype, kind):
    """The gradient comes back as short; the interpreter cuts bfloat16 off where a GPU rounds."""
    agree(embeddings(2, 17, 16, dtype), PATIENTS["some repeated"](17), kind, True, ONE, looser=4e3)


@pytest.mark.parametrize("layout", ["views last", "expanded"])
def test_strided_embeddings(layout):
    """Encoders and gathers hand over transposed embeddings; only the values count."""
    z = embeddings(3, 11, 6)
    z = z.permute(1, 2, 0).contiguous().permute(2, 0, 1) if layout == "views last" else z[:1].expand(2, 11, 6)
    agree(z, PATIENTS["some repeated"](11), PAPER, True, ONE)


@kinds
def test_an_embedding_of_zeros_is_similar_to_nothing_and_gets_no_gradient(kind):
    """0/0 would poison every weight of the encoder."""
    z = embeddings(2, 7, 5)
    z[0, 1] = 0
    z[:, 2] = 0
    gradient = agree(z, torch.tensor([0, 1, 1, 2, 2, 3, 0]), kind, True, ONE)
    assert (gradient[0, 1] == 0).all()
    assert (gradient[1, 1] != 0).any()


@kinds
@pytest.mark.parametrize("tau", [0.1, 0.015])
def test_views_that_are_opposed_stay_within_float32_and_float16(kind, tau):
    """All cosines near -1: the smallest sums there are, also at the least temperature that the kernels take.

    A column of padding, whose cosine is 0, is much larger than they: it must not become infinite.
    """
    z = embeddings(2, 6, 8) / 20 + 1
    z[1] = -z[1]
    agree(z, torch.tensor([0, 1, 2, 0, 3, 4]), kind, True, ONE, tau=tau, looser=60)


@kinds
def test_a_nan_reaches_the_loss(kind):
    """A run that went wrong must not look well."""
    z = embeddings(2, 9, 5)
    z[1, 3, 2] = torch.nan
    assert kernels(z, None if kind == NT_XENT else torch.arange(9), 0.1, kind, False, ONE).isnan()


# ---------------------------------------------------------------------------------------------------------- as operator


@pytest.mark.parametrize("kind", [PAPER, NT_XENT], ids=["paper", "nt-xent"])
def test_where_memory_is_short_pairs_of_views_take_turns(kind, monkeypatch):
    """Row sums in parts of all pairs at once would take 37 GB for 24 views of 65,536."""
    monkeypatch.setattr(launches, "MOST_PARTS", 70)  # a pair of views has 2 x 32
    agree(embeddings(3, 19, 5), PATIENTS["some repeated"](19), kind, True, ONE)


def test_the_operator_keeps_torchs_rules():
    """Shapes without values, autograd, and tracing by torch.compile: what torch.library checks of an operator."""
    z = embeddings(2, 16, 16).requires_grad_()  # without padding, which the comparison of results would look at
    patient, tau = torch.zeros(16, dtype=torch.int64), torch.tensor(0.1, requires_grad=True)
    torch.library.opcheck(torch.ops.clocs.contrast.default, (z, patient, tau, 1.0, PAPER, 1.0, False, ONE.as_numbers()))


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_compiled_step_has_the_same_loss_and_gradient(dynamic):
    """One graph, forward and backward; for any size too."""
    z, patient = embeddings(2, 9, 5), torch.arange(9) % 6
    step = torch.compile(
        lambda z: patient_nce(z, patient, 0.1, impl="fused") * 2, backend="aot_eager", fullgraph=True, dynamic=dynamic
    )
    found = []
    for one in (step, lambda z: patient_nce(z, patient, 0.1, impl="fused") * 2):
        leaf = z.clone().requires_grad_()
        loss = one(leaf)
        loss.backward()
        found.append((loss.detach(), leaf.grad))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("precision", ["fp16", "near-fp32"])
def test_the_losses_reach_the_kernels(precision):
    """By name, with tiles from the table, without a gradient for tau."""
    z, patient = embeddings(3, 9, 5), torch.arange(9) % 6
    close = {"rel": 1e-4} if precision == "fp16" else {"rel": 1e-6}
    found = patient_nce(z, patient, 0.2, impl="fused", precision=precision)
    assert found.item() == pytest.approx(patient_nce(z.double(), patient, 0.2).item(), **close)
    found = nt_xent(z, 0.2, impl="fused", precision=precision)
    assert found.item() == pytest.approx(nt_xent(z.double(), 0.2).item(), **close)


def test_nothing_waits_for_the_device():
    """A fake tensor has no values, and the operator knows the shapes of its results without them."""
    with FakeTensorMode():
        z = torch.randn(3, 8, 4, requires_grad=True)
        tau = torch.full((1,), 0.1, requires_grad=True)
        patient_nce(z, torch.randint(4, (8,)), tau, impl="fused").backward()
        assert (z.grad.shape, tau.grad.shape) == ((3, 8, 4), (1,))


def test_a_second_derivative_is_refused():
    """It would be zero, silently, since the backward pass is one operator."""
    z = embeddings(2, 4, 3).requires_grad_()
    (gradient,) = torch.autograd.grad(patient_nce(z, torch.arange(4), 0.1, impl="fused"), z, create_graph=True)
    with pytest.raises(RuntimeError, match=r"contrast_backward has no gradient|once_differentiable"):
        gradient.sum().backward()
