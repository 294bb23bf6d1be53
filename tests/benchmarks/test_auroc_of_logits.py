"""The AUROC of logits beside that of probabilities."""

from __future__ import annotations

from pathlib import Path

import auroc_of_logits
import numpy as np
import pytest

from clocs_core.artifacts.predictions import Predictions, save_predictions


def softmax(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def area(score: np.ndarray, is_class: np.ndarray) -> float:
    """The share of pairs in the right order."""
    pairs = [(up > down) + 0.5 * (up == down) for up in score[is_class] for down in score[~is_class]]
    return float(np.mean(pairs))


def test_both_are_printed_and_are_not_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Against pairs counted one by one, from logits that sum to 0 as those of a penalised linear model do."""
    rng = np.random.default_rng(0)
    label = np.arange(60) % 3
    logits = 2 * rng.normal(size=(60, 3)) + np.eye(3)[label]
    logits -= logits.mean(axis=1, keepdims=True)
    number = np.arange(60)
    rows = Predictions(softmax(logits), label, number, number)
    names = [f"{one:02d}" for one in number]
    save_predictions({("linear", "cmsc", 0.5): rows}, names, names, tmp_path / "predictions.npz")
    assert auroc_of_logits.main([str(tmp_path)]) == 0
    of_probabilities, of_logits = (
        np.mean([area(one[:, k], label == k) for k in range(3)]) for one in (softmax(logits), logits)
    )
    assert f"| linear | cmsc | 0.5 | {of_probabilities:.3f} | {of_logits:.3f} |" in capsys.readouterr().out
    assert abs(of_probabilities - of_logits) > 0.002
    assert auroc_of_logits.main([str(tmp_path), "--csv", str(tmp_path / "both.csv")]) == 0
    assert f"linear,cmsc,0.5,{of_probabilities:.6f},{of_logits:.6f}" in (tmp_path / "both.csv").read_text()


def test_logits_come_back_from_their_probabilities() -> None:
    logits = np.array([[1.0, -2.0, 1.0], [0.5, 0.25, -0.75]])
    assert auroc_of_logits.logits_of(softmax(logits + 7)) == pytest.approx(logits)


def test_a_folder_without_predictions_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert auroc_of_logits.main([str(tmp_path)]) == 2
    assert "predictions.npz" in capsys.readouterr().err
