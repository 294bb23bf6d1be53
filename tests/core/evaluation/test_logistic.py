"""The solver reaches scikit-learn's optimum: on plain, collinear, silent, rare and separable problems."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from clocs_core.evaluation import logistic
from clocs_core.evaluation.logistic import AnyOf, Fitted, OneOf, fit

Floats = NDArray[np.float64]


def make_features(n: int, d: int, hard: bool, seed: int = 0) -> Floats:
    """Make standardised features; if `hard`, of scales 1 to 1e-3 mixed, with a silent and two collinear dimensions."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    if hard:
        x = x @ (rng.normal(size=(d, d)) * np.linspace(1, 1e-3, d))
        x[:, 1], x[:, 2] = 0.0, x[:, 0]
        x[:, 3] = x[:, 0] + 1e-7 * rng.normal(size=n)
    sd = x.std(0)
    sd[sd == 0] = 1
    return np.asarray((x - x.mean(0)) / sd)


def draw_labels(x: Floats, classes: int, seed: int = 1) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(x.shape[1], classes)) * 2 / np.sqrt(x.shape[1])
    return np.asarray((x @ w + rng.gumbel(size=(len(x), classes))).argmax(1))


def objective(x: Floats, y: NDArray[np.int64], w: Floats, b: Floats, c: float) -> float:
    """Add the log losses row by row, and the penalty. w: (logit, feature)."""
    total = 0.0
    for row, label in zip(x, y, strict=True):
        at = w @ row + b
        if len(at) == 1:
            at = np.array([0.0, at[0]])
        total += float(np.log(np.exp(at - at.max()).sum()) + at.max() - at[label])
    return total + float((w**2).sum()) / (2 * c)


def fit_one_of(x: Floats, y: NDArray[np.int64], c: float) -> Fitted:
    classes = int(y.max()) + 1
    one_hot = torch.from_numpy(np.eye(classes)[y])[:, None]
    link = OneOf(one_hot) if classes > 2 else AnyOf(one_hot[..., 1])
    return fit(torch.from_numpy(x), link, torch.tensor([c], dtype=torch.float64))


def converged(x: Floats, y: NDArray[np.int64], c: float) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it cannot get below its own rounding
        return LogisticRegression(C=c, tol=1e-12, max_iter=20_000).fit(x, y)


CASES = [
    pytest.param(600, 16, 4, False, 1.0, id="plain"),
    pytest.param(600, 16, 4, True, 1.0, id="collinear and silent"),
    pytest.param(600, 16, 2, True, 100.0, id="two classes, hardly penalised"),
    pytest.param(300, 24, 7, True, 0.001, id="seven classes, strongly penalised"),
    pytest.param(40, 60, 3, False, 1.0, id="more features than rows: separable"),
    pytest.param(3, 5, 3, False, 1.0, id="a row for each class"),
]


@pytest.mark.parametrize(("n", "d", "classes", "hard", "c"), CASES)
def test_the_optimum_is_that_of_scikit_learn(n: int, d: int, classes: int, hard: bool, c: float) -> None:
    x = make_features(n, d, hard)
    y = draw_labels(x, classes)
    y[:classes] = np.arange(classes)
    check(x, y, c)


@pytest.mark.parametrize("seed", [16, 64, 143])
def test_rows_of_very_different_sizes_have_the_same_optimum(seed: int) -> None:
    """A whole step of Newton's method raises the objective here, without bound: steps must be halved."""
    rng = np.random.default_rng(seed)
    n, d, classes = int(rng.integers(4, 40)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    x = rng.normal(size=(n, d)) * np.exp(rng.normal(size=(n, 1)) * rng.uniform(0, 4))
    y = rng.integers(0, classes, n)
    y[:classes] = range(classes)
    check(x, y, 1.0)


def test_one_rare_class_has_the_same_optimum() -> None:
    x = make_features(800, 12, hard=True)
    y = draw_labels(x, 3)
    y[y == 2] = 0
    y[:2] = 2
    check(x, y, 1.0)


def test_any_of_classes_together_have_the_optimum_of_each() -> None:
    """Half of the rows, a rare class, one that a single feature separates, and noise, on hard features."""
    x = make_features(500, 12, hard=True)
    rng = np.random.default_rng(2)
    columns = [draw_labels(x, 2), np.arange(500) < 3, x[:, 5] > 0.3, rng.random(500) < 0.1]
    y = np.stack(columns, axis=1).astype(np.int64)
    c = torch.ones(4, dtype=torch.float64)
    found = fit(torch.from_numpy(x), AnyOf(torch.from_numpy(y).double()), c)
    assert bool(found.converged.all())
    for column in range(4):
        expected = converged(x, y[:, column], 1.0)
        w, b = found.weight[:, column].T.numpy(), found.intercept[column].numpy()
        theirs = objective(x, y[:, column], expected.coef_, expected.intercept_, 1.0)
        assert objective(x, y[:, column], w, b, 1.0) <= theirs * (1 + 1e-8)
        probability = torch.sigmoid(found.logits(torch.from_numpy(x))[:, column, 0])
        np.testing.assert_allclose(probability.numpy(), expected.predict_proba(x)[:, 1], atol=1e-5)


@pytest.mark.cuda
def test_a_gpu_finds_the_optimum_of_the_cpu() -> None:
    x = torch.from_numpy(make_features(500, 12, hard=True))
    y = torch.from_numpy(np.random.default_rng(3).random((500, 5)) < [0.5, 0.01, 0.9, 0.3, 0.1]).double()
    one_hot = torch.nn.functional.one_hot(torch.from_numpy(draw_labels(x.numpy(), 4)), 4).double()[:, None]
    c = torch.tensor([1.0, 100.0, 0.01, 1.0, 10.0], dtype=torch.float64)
    for link, there in ((AnyOf(y), AnyOf(y.cuda())), (OneOf(one_hot), OneOf(one_hot.cuda()))):
        expected, found = fit(x, link, c), fit(x.cuda(), there, c.cuda())
        assert bool(found.converged.all())
        torch.testing.assert_close(found.logits(x.cuda()).cpu(), expected.logits(x), rtol=0, atol=1e-5)


def check(x: Floats, y: NDArray[np.int64], c: float) -> None:
    found, expected = fit_one_of(x, y, c), converged(x, y, c)
    assert bool(found.converged.all())
    ours = objective(x, y, found.weight[:, 0].T.numpy(), found.intercept[0].numpy(), c)
    theirs = objective(x, y, expected.coef_, expected.intercept_, c)
    assert ours <= theirs * (1 + 1e-8)
    at = found.logits(torch.from_numpy(x))[:, 0]
    two = at.shape[1] == 1
    probability = torch.cat([torch.sigmoid(-at), torch.sigmoid(at)], 1) if two else torch.softmax(at, 1)
    np.testing.assert_allclose(probability.numpy(), expected.predict_proba(x), atol=1e-5)


def test_problems_solved_together_are_those_solved_alone() -> None:
    """Any-of classes and several C are one batch: none may stop early or late because of another."""
    x = torch.from_numpy(make_features(400, 10, hard=True))
    y = torch.from_numpy((np.random.default_rng(3).random((400, 4)) < [0.5, 0.02, 0.9, 0.3]).astype(float))
    c = torch.tensor([1.0, 100.0, 0.01, 1.0], dtype=torch.float64)
    together = fit(x, AnyOf(y), c).logits(x)
    for problem in range(4):
        alone = fit(x, AnyOf(y[:, problem : problem + 1]), c[problem : problem + 1]).logits(x)
        torch.testing.assert_close(together[:, problem], alone[:, 0], rtol=0, atol=1e-5)


def test_problems_solved_in_chunks_are_those_solved_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is short of memory takes them a few at a time."""
    x = torch.from_numpy(make_features(200, 6, hard=False))
    y = torch.from_numpy((np.random.default_rng(3).random((200, 5)) < 0.4).astype(float))
    c = torch.tensor([1.0, 100.0, 0.01, 1.0, 10.0], dtype=torch.float64)
    together = fit(x, AnyOf(y), c)
    solved = []
    solve = logistic._solve
    monkeypatch.setattr(logistic, "_solve", lambda z, link, c: solved.append(len(c)) or solve(z, link, c))
    monkeypatch.setattr(logistic, "_MEMORY", 5 * (16 * 7**2 + 80 * 200))  # of five problems of one logit
    torch.testing.assert_close(fit(x, AnyOf(y), c, share=0.5).logits(x), together.logits(x), rtol=0, atol=1e-6)
    one_hot = torch.nn.functional.one_hot(torch.arange(200) % 3).double()[:, None]
    assert fit(x, OneOf(one_hot), c, share=0.0).logits(x).shape == (200, 5, 3)
    assert solved == [2, 2, 1, *[1] * 5]


def test_a_problem_too_large_for_a_hessian_has_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    x = make_features(300, 8, hard=True)
    y = draw_labels(x, 3)
    expected = fit_one_of(x, y, 1.0)
    monkeypatch.setattr(logistic, "_LARGEST", 0)
    found = fit_one_of(x, y, 1.0)
    torch.testing.assert_close(
        found.logits(torch.from_numpy(x)), expected.logits(torch.from_numpy(x)), atol=1e-4, rtol=0
    )


def test_a_problem_that_did_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "_STEPS", 1)
    x = make_features(100, 4, hard=False)
    assert not bool(fit_one_of(x, draw_labels(x, 3), 1.0).converged.any())
