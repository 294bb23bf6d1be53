"""VICReg against the equations of the paper, written in loops."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_plugins.vicreg.vicreg import vicreg

seeds = st.integers(0, 2**31)
quick = settings(max_examples=20)


def column(z, j):
    return [row[j] for row in z]


def covariance_of(x, y):
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / (len(x) - 1)


def v(z, gamma=1.0, epsilon=1e-4):
    """Equations 1 and 2."""
    d = len(z[0])
    terms = [max(0.0, gamma - math.sqrt(covariance_of(column(z, j), column(z, j)) + epsilon)) for j in range(d)]
    return sum(terms) / d


def c(z):
    """Equations 3 and 4."""
    d, total = len(z[0]), 0.0
    for j in range(d):
        for k in range(d):
            if j != k:
                total += covariance_of(column(z, j), column(z, k)) ** 2
    return total / d


def s_of_equation_5(z, other):
    total = 0.0
    for row, its in zip(z, other, strict=True):
        total += sum((a - b) ** 2 for a, b in zip(row, its, strict=True))
    return total / len(z)


def s_of_algorithm_1(z, other):
    return s_of_equation_5(z, other) / len(z[0])


def oracle(z, weights=(25, 25, 1), s=s_of_algorithm_1, pairs=()):
    z, (lam, mu, nu) = z.tolist(), weights
    chosen = [(z[a], z[b]) for a, b in pairs] or list(combinations(z, 2))
    costs = [lam * s(a, b) + mu * (v(a) + v(b)) + nu * (c(a) + c(b)) for a, b in chosen]
    return sum(costs) / len(costs)


def embeddings(seed, views, batch, dim=5, dtype=torch.float64):
    """Embeddings with dimensions of different sizes, some above the hinge and some below."""
    z = torch.randn(views, batch, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (z * torch.linspace(0.2, 2.5, dim, dtype=torch.float64) + 3).to(dtype)


@pytest.mark.parametrize("views", [2, 3, 4])
@pytest.mark.parametrize(("batch", "dim"), [(2, 1), (2, 4), (7, 5), (3, 8), (16, 3)])
@pytest.mark.parametrize("weights", [(25, 25, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.3, 1.7, 11)])
def test_the_loss_is_the_papers(views, batch, dim, weights):
    """A wrong divisor, a diagonal that is counted or a view that is left out shows here, term by term."""
    z = embeddings(views, views, batch, dim)
    loss = vicreg(z, *weights)
    assert (loss.shape, loss.dtype) == ((), torch.float64)
    assert loss.item() == pytest.approx(oracle(z, weights), rel=1e-11, abs=1e-12)


def test_the_defaults_are_the_papers():
    """lambda = mu = 25, nu = 1, gamma = 1, epsilon = 1e-4."""
    z = embeddings(0, 2, 6)
    assert vicreg(z).item() == pytest.approx(oracle(z, (25, 25, 1)), rel=1e-12)


def test_equation_5_as_printed_is_the_weight_times_the_dimensions():
    """The paper's equation and its algorithm differ by that factor; both can be had."""
    z = embeddings(1, 2, 6, dim=7)
    assert vicreg(z, 25 * 7).item() == pytest.approx(oracle(z, s=s_of_equation_5), rel=1e-12)


def test_two_views_cost_the_sum_of_their_variances_not_the_mean():
    """The released code halves this term, the paper does not: collapse of both views costs twice mu."""
    z = torch.zeros(2, 6, 4, dtype=torch.float64)
    assert vicreg(z).item() == pytest.approx(2 * 25 * (1 - 0.01), rel=1e-12)


def test_gamma_and_epsilon_are_those_of_the_hinge():
    """Deviation 3 is enough for gamma = 1, and not for gamma = 5."""
    z = torch.tensor([[[-3.0], [3.0]]] * 2, dtype=torch.float64)  # variance 18
    assert vicreg(z, gamma=1).item() == 0
    assert vicreg(z, gamma=5, epsilon=7).item() == pytest.approx(2 * 25 * (5 - math.sqrt(18 + 7)), abs=1e-12)
    assert vicreg(z, gamma=6, epsilon=7).item() == pytest.approx(2 * 25 * 1, rel=1e-12)


@pytest.mark.parametrize("pairs", [((0, 2),), ((0, 1), (1, 3)), ((2, 1), (0, 3), (0, 1))])
def test_only_the_views_that_were_chosen_are_compared(pairs):
    """Views that share nothing but the recording may be paired by their generator."""
    z = embeddings(2, 4, 5)
    assert vicreg(z, pairs=pairs).item() == pytest.approx(oracle(z, pairs=pairs), rel=1e-12)


@pytest.mark.parametrize("views", [2, 3])
@pytest.mark.parametrize("batch", [1, 2, 6])
def test_the_gradient_is_that_of_the_loss(views, batch):
    """Through the mean, the root and the hinge."""
    z = embeddings(3, views, batch, dim=3).requires_grad_()
    assert torch.autograd.gradcheck(vicreg, (z,))


def test_a_batch_of_one_has_only_its_views_to_agree():
    """The last batch of an epoch can be that small. One instance has no variance: its v is the constant 0.99."""
    z = embeddings(4, 3, 1).requires_grad_()
    loss, agreement = vicreg(z), vicreg(z, 25, 0, 0)
    assert loss.item() == pytest.approx(agreement.item() + 2 * 25 * (1 - 0.01), rel=1e-12)
    (gradient,) = torch.autograd.grad(loss, z)
    (expected,) = torch.autograd.grad(agreement, z)
    torch.testing.assert_close(gradient, expected)
    assert (gradient.abs().amax(-1) > 0).all()


@given(seed=seeds, batch=st.integers(1, 8), views=st.integers(2, 4), dim=st.integers(1, 6))
@quick
def test_what_does_not_matter_does_not_change_the_loss(seed, batch, views, dim):
    """Order of the batch, of the views and of the dimensions, their signs, and where the embeddings lie as a whole."""
    generator = torch.Generator().manual_seed(seed)
    z = embeddings(seed, views, batch, dim)
    loss = vicreg(z).item()
    signs = 1 - 2 * torch.randint(2, (dim,), generator=generator)
    same = {
        "batch": vicreg(z[:, torch.randperm(batch, generator=generator)]),
        "views": vicreg(z[torch.randperm(views, generator=generator)]),
        "dimensions": vicreg(z[..., torch.randperm(dim, generator=generator)] * signs),
        "place": vicreg(z + torch.randn(dim, generator=generator)),
    }
    assert {what: value.item() for what, value in same.items()} == pytest.approx(dict.fromkeys(same, loss), rel=1e-9)


@given(seed=seeds, views=st.integers(2, 5))
@quick
def test_the_gradient_reaches_every_instance_of_every_view(seed, views):
    """Each of the three terms by itself, too."""
    z = embeddings(seed, views, 6).requires_grad_()
    for weights in ((25, 25, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)):
        (gradient,) = torch.autograd.grad(vicreg(z, *weights), z)
        assert (gradient.abs().amax(-1) > 1e-9).all()


@given(seed=seeds, views=st.integers(3, 5))
@quick
def test_many_views_are_the_mean_of_their_pairs(seed, views):
    """So that the loss means the same with 2 segments and with 4."""
    z = embeddings(seed, views, 5)
    pairs = [vicreg(torch.stack(pair)).item() for pair in combinations(z, 2)]
    assert vicreg(z).item() == pytest.approx(sum(pairs) / len(pairs), rel=1e-10)


@given(seed=seeds, shared=st.booleans())
@quick
def test_collapse_costs_more_than_spread_out_embeddings(seed, shared):
    """What replaces negatives: a constant, and one dimension that is copied to all, are both worse than spread."""
    z = torch.randn(1, 64, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).expand(2, -1, -1)
    collapsed = z[..., :1].expand_as(z) if shared else z[:, :1].expand_as(z)
    assert vicreg(collapsed).item() > vicreg(z).item() + 1


def test_descent_leads_out_of_collapse():
    """From embeddings that are nearly one point to deviation 1 and no correlation: the gradient points there."""
    z = (1e-3 * embeddings(5, 2, 64, dim=4)).requires_grad_()
    optimiser = torch.optim.Adam([z], lr=0.05)
    for _ in range(100):
        optimiser.zero_grad()
        vicreg(z).backward()
        optimiser.step()
    found = z.detach()[0]
    assert found.std(0).min() > 0.95
    assert (torch.corrcoef(found.T) - torch.eye(4)).abs().max() < 0.1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_floats_are_reduced_in_float32(dtype):
    """Only the embeddings are rounded; sums over the batch are not."""
    z = embeddings(6, 3, 64, dim=16).to(dtype)
    loss = vicreg(z)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(vicreg(z.double()).item(), rel=1e-5)


def test_autocast_does_not_touch_the_loss():
    """A training step under autocast would otherwise compute covariances with three digits."""
    z = embeddings(7, 2, 32, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = vicreg(z)
    assert torch.equal(inside, vicreg(z))


def test_nothing_waits_for_the_device():
    """A fake tensor has no values: reading one, or a shape made of values, raises. So would a CUDA graph."""
    with FakeTensorMode():
        z = torch.randn(3, 8, 4, requires_grad=True)
        vicreg(z, pairs=((0, 2), (1, 2))).backward()
        assert z.grad.shape == (3, 8, 4)


@pytest.mark.parametrize("shape", [(1, 4, 3), (4, 3), (2, 0, 3), (2, 4, 0), (2, 2, 4, 3)])
def test_bad_input_is_refused_with_what_was_expected(shape):
    """One view has nothing to agree with, and nothing has no mean."""
    with pytest.raises(
        ValueError, match=r"got embeddings of shape \(.*\), expected \(view, batch, dim\) with at least"
    ):
        vicreg(torch.zeros(shape))
