"""The two flips: which axis is which."""

from __future__ import annotations

import pytest
import torch

from clocs_plugins.perturbations.flips import flip_x, flip_y


def signals(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_flip_y_reads_every_signal_backwards():
    """Along time only: a flip of the channels or of the batch would mix up patients without complaint."""
    signal = signals(2, 3, 7)
    flipped = flip_y(signal, torch.Generator())
    for i in range(2):
        for j in range(3):
            assert flipped[i, j].tolist() == list(reversed(signal[i, j].tolist()))


def test_flip_x_turns_every_signal_upside_down():
    """The names are the paper's: FlipX is the one that changes amplitudes."""
    signal = signals(2, 3, 7)
    flipped = flip_x(signal, torch.Generator())
    assert flipped.flatten().tolist() == [-value for value in signal.flatten().tolist()]


@pytest.mark.parametrize("flip", [flip_x, flip_y])
def test_flipping_twice_changes_nothing(flip):
    signal = signals(4, 10)
    assert torch.equal(flip(flip(signal, torch.Generator()), torch.Generator()), signal)


def test_the_flips_draw_nothing_and_commute():
    """Their offers say random=False: a method that needs two different views refuses them alone."""
    generator = torch.Generator().manual_seed(3)
    before, signal = generator.get_state(), signals(4, 10)
    assert torch.equal(flip_x(flip_y(signal, generator), generator), flip_y(flip_x(signal, generator), generator))
    assert torch.equal(generator.get_state(), before)
