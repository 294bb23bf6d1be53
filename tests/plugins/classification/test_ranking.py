"""AUROC and average precision in torch are those of each draw by itself, in blocks and on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from clocs_plugins.classification import clocs_metrics, ranking

METRICS = {metric.name: metric for metric in clocs_metrics() if metric.score_tensors is not None}
Floats = NDArray[np.float64]


def rows(count: int, classes: int, any_of: bool, draws: int = 9) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Make rows with ties, a class that nobody has, a draw of nobody and a draw of one row."""
    rng = np.random.default_rng(count)
    probability = np.round(rng.random((count, classes)), 2)
    label = rng.integers(0, 2, (count, classes)) if any_of else rng.integers(0, classes - 1, count)
    if any_of:
        label[:, 0], label[:, 1] = 0, 1
    weights = rng.integers(0, 3, (draws, count)).astype(np.float64)
    weights[0], weights[1] = 0, np.arange(count) == 0
    return probability, label, weights


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("any_of", [False, True])
def test_blocks_of_draws_are_the_draws_of_one_block(name: str, any_of: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of rows by a thousand draws would not fit into a cache at once."""
    probability, label, weights = rows(50, 4, any_of)
    whole = METRICS[name].score_draws(probability, label, weights)  # type: ignore[misc]
    expected = [METRICS[name].score(probability, label, weight) for weight in weights]
    np.testing.assert_allclose(whole, expected, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(ranking, "_AT_ONCE", 100)
    blocks = METRICS[name].score_draws(probability, label, weights)  # type: ignore[misc]
    np.testing.assert_allclose(blocks, whole, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", METRICS)
def test_weights_need_not_be_whole_numbers_and_arrays_may_be_reversed_or_locked(name: str) -> None:
    probability, label, weights = (one[..., ::-1] if one.ndim == 1 else one[:, ::-1] for one in rows(30, 3, False))
    probability, weights = probability[::-1], weights / 7
    for one in (probability, label, weights):
        one.setflags(write=False)
    found = METRICS[name].score_draws(probability, label, weights)  # type: ignore[misc]
    expected = [METRICS[name].score(probability, label, weight) for weight in weights]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_label_that_is_no_class_is_refused() -> None:
    probability, label, weights = rows(30, 3, False)
    with pytest.raises(ValueError, match="labels from 0 to 7"):
        ranking.draw_auroc(probability, np.where(label == 1, 7, label), weights)
    with pytest.raises(ValueError, match=r"weight \(29,\)"):
        ranking.draw_auroc(probability, label, weights[:, 1:])


@pytest.mark.cuda
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("any_of", [False, True])
def test_a_gpu_scores_as_the_cpu_does(name: str, any_of: bool) -> None:
    probability, label, weights = rows(500, 5, any_of, draws=200)
    probability[7] = np.nan
    expected = METRICS[name].score_draws(probability, label, weights)  # type: ignore[misc]
    found = METRICS[name].score_tensors(*(torch.from_numpy(one).cuda() for one in (probability, label, weights)))  # type: ignore[misc]
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=0, atol=1e-9)
