"""Attention pooling against loops; what it learns; every promise of a protocol."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from fake_offers import flat, tiny, together
from fake_plugins import points
from pool_trials import trial_of
from sklearn.linear_model import LogisticRegression
from torch import nn

from clocs_core.cli import main
from clocs_plugins.attention_pool import PoolOptions, clocs_protocols, predict
from clocs_plugins.attention_pool.pool import AttentionPool


def test_the_pool_is_a_mean_weighted_by_the_softmax_of_a_query():
    torch.manual_seed(0)
    pool = AttentionPool(3, 2).double()
    for parameter in pool.parameters():
        nn.init.normal_(parameter)
    sequence = torch.randn(2, 5, 3, dtype=torch.float64)
    query, gain, shift = (one.tolist() for one in (pool.query, pool.norm.weight, pool.norm.bias))
    for number, rows in enumerate(sequence.tolist()):
        held = []
        for row in rows:
            mean = sum(row) / 3
            deviation = math.sqrt(sum((one - mean) ** 2 for one in row) / 3 + 1e-5)
            held.append([gain[i] * (row[i] - mean) / deviation + shift[i] for i in range(3)])
        weights = [math.exp(sum(query[i] * one[i] for i in range(3)) / math.sqrt(3)) for one in held]
        pooled = [sum(weights[t] * held[t][i] for t in range(5)) / sum(weights) for i in range(3)]
        for output in range(2):
            weight, bias = pool.linear.weight[output].tolist(), pool.linear.bias[output].item()
            expected = sum(weight[i] * pooled[i] for i in range(3)) + bias
            assert pool(sequence)[number, output].item() == pytest.approx(expected, rel=1e-12)


def test_a_mean_over_time_would_not_show_it():
    """Or the next test would say nothing of the query."""
    trial = trial_of("one_of")
    means = {}
    for part in ("train", "scored"):
        signal = trial.signal(part, np.arange(len(getattr(trial, part)))).numpy()  # (n, channel, position)
        means[part] = ((signal - signal.mean(1, keepdims=True)) / signal.std(1, keepdims=True)).mean(2)
    right = LogisticRegression().fit(means["train"], trial.train.label).predict(means["scored"]) == trial.scored.label
    assert right.mean() < 0.93


@pytest.mark.parametrize("kind", ["one_of", "any_of", "number"])
def test_it_learns_what_one_position_shows(kind):
    trial = trial_of(kind)
    answer = predict(PoolOptions(learning_rate=0.05, epochs=150, patience=30), trial)
    found, label = answer.predicted, trial.scored.label
    if kind == "number":
        assert np.abs(found[:, 0] - label).mean() < 3
    else:
        right = found.argmax(1) == (label if kind == "one_of" else label.argmax(1))
        assert right.mean() > 0.95
    assert 1 <= answer.chosen["epoch"] <= 150


def test_an_encoder_without_a_sequence_is_refused_before_anything_is_read(tmp_path, capsys):
    offered = {
        "clocs_datasets": lambda: [tiny()],
        "clocs_encoders": lambda: [flat()],
        "clocs_methods": lambda: [together()],
        "clocs_protocols": clocs_protocols,
    }
    words = ["evaluate", "--random", "--encoder", "flat", "--dataset", "tiny", "--protocol", "attention-pool"]
    assert main([*words, "--data-root", str(tmp_path / "data"), "--out", str(tmp_path / "out")], points(**offered)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "reads an encoder's sequence over time, and the encoder 'flat' has none" in said
    assert not any(tmp_path.iterdir())
