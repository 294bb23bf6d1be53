"""A network reads signals as in training: in eval mode, in its own unit, and normalised after the conversion."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from clocs_core.inference.network import AsTrained, outputs_of
from clocs_core.train.normalise import leave, min_max


def test_a_network_that_was_in_train_mode_is_run_in_eval_mode():
    """With dropout on, two calls would differ; with BatchNorm, a row would depend on the others."""
    network = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.BatchNorm1d(8)).train()
    signal = np.random.default_rng(0).normal(size=(6, 1, 8)).astype(np.float32)
    ready = AsTrained(network, normalise=leave)
    first, second = (outputs_of(ready, signal, torch.device("cpu")) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first[2:3], outputs_of(ready, signal[2:3], torch.device("cpu")))


def test_samples_are_converted_into_the_units_of_the_network():
    seen = AsTrained(nn.Identity(), normalise=leave, factor=1000.0)(torch.tensor([[[0.5, -2.0]]]))
    assert seen.tolist() == [[[500.0, -2000.0]]]


def test_the_unit_is_converted_before_the_signal_is_normalised():
    """A small signal in volts is not small in the microvolts of training: a flat line is one in the network's unit."""
    volts = torch.tensor([[[0.0, 1e-8, 2e-8]]])
    seen = AsTrained(nn.Identity(), normalise=min_max, factor=1e6)(volts)
    torch.testing.assert_close(seen, torch.tensor([[[0.0, 0.5, 1.0]]]), rtol=0, atol=1e-5)


def test_signals_are_run_in_batches_and_come_back_in_order(monkeypatch):
    monkeypatch.setattr("clocs_core.inference.network._AT_ONCE", 3)
    ticks = []
    signal = np.arange(8, dtype=np.float32).reshape(8, 1, 1)
    found = outputs_of(nn.Flatten(), signal, torch.device("cpu"), lambda done, total: ticks.append((done, total)))
    assert found[:, 0].tolist() == list(range(8))
    assert ticks == [(3, 8), (6, 8), (8, 8)]
