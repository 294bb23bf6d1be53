"""Hidden stretches: where they are, what is left, and masks that would hide everything or nothing."""

from __future__ import annotations

import pytest
import torch
from masked_worlds import build, draws, transformer

from clocs_core import MaskedSignals
from clocs_plugins.jepa import JepaOptions
from clocs_plugins.mae import MaeOptions


@pytest.mark.parametrize("samples", [60, 63])
def test_hidden_samples_are_zero_and_the_others_are_as_they_were(samples):
    """The last position may have fewer samples."""
    masks, signal = MaskedSignals(2, 3, 5), torch.randn(50, 2, samples) + 10
    partial, hidden = masks.draw(signal, draws())
    assert hidden.shape == (50, -(-samples // 5))
    for row in range(50):
        for sample in range(samples):
            expected = torch.zeros(2) if hidden[row, sample // 5] else signal[row, :, sample]
            assert torch.equal(partial[row, :, sample], expected)


def test_stretches_have_their_length_and_every_place_is_drawn():
    hidden = MaskedSignals(1, 3, 5).draw(torch.ones(4000, 1, 60), draws())[1]
    assert (hidden.sum(1) == 3).all()
    first = hidden.int().argmax(1)
    counts = torch.bincount(first, minlength=10)
    assert len(counts) == 10
    assert counts.min() > 300  # 400 expected


def test_some_is_hidden_and_some_is_left_in_every_recording():
    made = build("mae", transformer(), masked=0.9, stretch=5)
    hidden = made.masks.draw(torch.ones(2000, 2, 60), draws())[1]
    assert hidden.any(1).all()
    assert not hidden.all(1).any()


def test_equal_generators_hide_the_same():
    masks, signal = MaskedSignals(2, 3, 5), torch.randn(20, 2, 60)
    assert torch.equal(masks.draw(signal, draws(3))[1], masks.draw(signal, draws(3))[1])
    assert not torch.equal(masks.draw(signal, draws(3))[1], masks.draw(signal, draws(4))[1])


@pytest.mark.parametrize(
    ("options", "said"),
    [({"masked": 0.1, "stretch": 2}, "hides none of"), ({"masked": 0.99, "stretch": 12}, "hides none of")],
)
def test_masks_that_do_not_fit_a_frame_are_refused(options, said):
    with pytest.raises(ValueError, match=rf"a frame of 60 samples has 12 positions of 5 samples.*{said}"):
        build("jepa", transformer(), **options)


def test_samples_are_hidden_in_shorter_gaps_than_features():
    """The rows of docs/results-ptbxl.md depend on it."""
    assert (MaeOptions().stretch, JepaOptions().stretch) == (1, 5)
