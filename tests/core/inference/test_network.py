"""A network gets its input in the unit and the normalisation of its training."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from clocs_core.inference import network as module
from clocs_core.inference.network import AsTrained, outputs_of

SIGNAL = torch.tensor([[[1.0, 3.0, 2.0]]])


def test_the_unit_is_converted_before_the_normalisation():
    assert torch.equal(AsTrained(nn.Identity(), False, 1000.0)(SIGNAL), 1000 * SIGNAL)
    torch.testing.assert_close(AsTrained(nn.Identity(), True, 1000.0)(SIGNAL), torch.tensor([[[0.0, 1.0, 0.5]]]))


def test_the_network_is_in_eval_mode():
    wrapped = AsTrained(nn.Dropout(0.9).train(), False)
    assert torch.equal(wrapped(SIGNAL), SIGNAL)


def test_outputs_of_batches_come_in_order_with_progress(monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    signal, told = np.arange(15, dtype=np.float32).reshape(5, 1, 3), []
    found = outputs_of(nn.Flatten(), signal, torch.device("cpu"), lambda *now: told.append(now))
    np.testing.assert_array_equal(found, signal[:, 0])
    assert told == [(2, 5), (4, 5), (5, 5)]
