"""Our solver and scikit-learn's agree on real features, and the benchmark says by how much."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from linear_differences import Problem, compare, record, summarise
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from clocs_core.contracts.records import Task
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.logistic import OneOf, fit

Floats = NDArray[np.float64]


def rows(seed: int, n: int = 120) -> Features:
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 3
    return Features((rng.normal(size=(n, 4)) + label[:, None]).astype(np.float32), label, label * 0, np.arange(n) // 2)


def test_differences_are_ours_minus_theirs_for_every_score_of_both_levels() -> None:
    found = compare(Problem(rows(0), rows(1), Task("rhythm", classes=("a", "b", "c"))))
    assert found["difference"]["default"]["auroc of records"] == (
        found["scores"]["ours"]["auroc of records"] - found["scores"]["default"]["auroc of records"]
    )
    assert len(found["difference"]["converged"]) == 8
    largest = summarise([found, found])
    assert largest["converged"]["a probability"] < 1e-5
    assert largest["default"]["auroc of frames"] == abs(found["difference"]["default"]["auroc of frames"])


@pytest.mark.slow
def test_the_optimum_on_real_features_is_that_of_scikit_learn(test_data: Path) -> None:
    root = str(test_data / "cardiology")
    problems = record(
        f"run --plugin simclr --dataset cardiology --root {root} --epochs 1 --label-fraction 0.25".split()
    )
    assert len(problems) == 2  # of the trained encoder and of the untrained one
    for problem in problems[:1]:  # scikit-learn takes a minute for one
        label = problem.train.label
        x = problem.train.embedding.astype(np.float64)
        x = (x - x.mean(0)) / np.where(x.std(0) == 0, 1.0, x.std(0))
        expected = LogisticRegression(solver="newton-cholesky", tol=1e-14, max_iter=1000).fit(x, label)
        one_hot = np.eye(int(label.max()) + 1)[label][:, expected.classes_]
        link, once = OneOf(torch.from_numpy(one_hot)[:, None]), torch.ones(1, dtype=torch.float64)
        found = fit(torch.from_numpy(x), link, once)
        ours = objective(x, one_hot, found.weight[:, 0].numpy(), found.intercept.numpy())
        assert ours <= objective(x, one_hot, expected.coef_.T, expected.intercept_) * (1 + 1e-8)
        probability = torch.softmax(found.logits(torch.from_numpy(x))[:, 0], dim=1).numpy()
        np.testing.assert_allclose(probability, expected.predict_proba(x), atol=1e-5)


def objective(x: Floats, one_hot: Floats, w: Floats, b: Floats) -> float:
    """Add log losses and penalty. w: (feature, class)."""
    at = x @ w + b
    highest = at.max(1)
    losses = np.log(np.exp(at - highest[:, None]).sum(1)) + highest - (at * one_hot).sum(1)
    return float(losses.sum() + (w**2).sum() / 2)
