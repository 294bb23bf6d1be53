"""Dropout in levels of 16 bits, at both ends of what a share can be."""

from __future__ import annotations

import pytest
import torch

from clocs_plugins.cnn import block_rows
from clocs_plugins.cnn.block import Block
from clocs_plugins.cnn.dropout_bits import LEVELS, draw_noise, in_levels


@pytest.mark.parametrize(
    ("share", "dropped", "scale"), [(0.0, 0, 1.0), (0.1, 6554, 65536 / 58982), (0.999999, 65535, 65536.0)]
)
def test_a_share_is_the_nearest_level_below_all_of_them(share, dropped, scale):
    """The nearest to 0.999999 is all 65536, and what is kept of nothing is divided by zero."""
    found = in_levels(share)
    assert tuple(found) == (dropped, scale)
    assert found.threshold == dropped - 32768


@pytest.mark.parametrize("share", [0.0, 0.1, 0.999999])
def test_a_block_in_rows_trains_at_any_share(share):
    """Every share in [0, 1) is one that the option takes."""
    torch.manual_seed(0)
    block = Block(1, 4, 7, 3, share)
    made = block_rows.train_block(block, torch.randn(8, 100, 1))
    made.sum().backward()
    assert made.isfinite().all()
    assert block.conv.weight.grad.isfinite().all()
    assert (made != 0).any() == (share < 0.9)


def test_a_threshold_with_a_sign_drops_as_many_draws_as_one_without():
    """Kernels compare with int16, rows with numbers from 0 on."""
    drawn = draw_noise(10_001, torch.device("cpu"))
    assert drawn.shape == (10_001,)
    found, below = in_levels(0.3), 0
    for number in drawn.tolist():
        below += number + LEVELS // 2 < found.dropped
    assert int((drawn < found.threshold).sum()) == below
