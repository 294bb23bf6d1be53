"""Sequences of a frozen encoder: the same whether they are kept or computed, and computed once where they are kept."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import torch
from pool_trials import Copy, trial_of

from clocs_plugins.attention_pool import PoolOptions, predict, sequences


class Counted(Copy):
    """Counts the signals that it reads."""

    def __init__(self):
        super().__init__()
        self.read = 0

    def sequence(self, signal):
        self.read += len(signal)
        return super().sequence(signal)


def trial_that_counts():
    return attrs.evolve(trial_of("one_of"), encoder=Counted())


@pytest.mark.parametrize(("most", "read"), [(2**30, 1 + 200), (0, 1 + 3 * 70)])
def test_rows_have_the_sequences_of_their_signals(most, read, monkeypatch):
    monkeypatch.setattr(sequences, "ON_CPU", most)
    trial, rows = trial_that_counts(), torch.arange(199, 129, -1)
    of = sequences.reader(trial, "train", 200, 64)
    for _ in range(3):
        assert torch.equal(of(rows), trial.signal("train", rows.numpy()).transpose(1, 2))
    assert trial.encoder.read == read


def test_sequences_are_computed_where_memory_is_gone_meanwhile():
    class Full(torch.Tensor):
        def new_empty(self, *shape):
            raise torch.OutOfMemoryError

    class Reader(Copy):
        def sequence(self, signal):
            return super().sequence(signal).as_subclass(Full)

    trial = attrs.evolve(trial_of("one_of"), encoder=Reader())
    of = sequences.reader(trial, "train", 200, 64)
    assert torch.equal(of(torch.tensor([7])), trial.signal("train", np.array([7])).transpose(1, 2))


def test_what_is_learnt_does_not_depend_on_what_is_kept(monkeypatch):
    found = []
    for most in (2**30, 0):
        monkeypatch.setattr(sequences, "ON_CPU", most)
        trial = trial_that_counts()
        torch.manual_seed(trial.seed)  # as the engine does
        found.append((predict(PoolOptions(epochs=3), trial).predicted, trial.encoder.read))
    (kept, few), (computed, many) = found
    np.testing.assert_array_equal(kept, computed)
    assert few == 200 + 60 + 60 + 2  # one signal of a part that is read again tells its size
    assert many == 3 * (200 + 60) + 60 + 2


@pytest.mark.cuda
def test_a_gpu_keeps_a_part_of_what_is_free():
    device = torch.device("cuda")
    assert 0 < sequences.room(device) <= sequences.SHARE * torch.cuda.mem_get_info(device)[1]
