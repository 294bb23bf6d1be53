"""How the kernels of the encoder cut the work, and what they leave to torch's modules. No kernel is run here."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_plugins.cnn import fused_geometry as geometry
from clocs_plugins.cnn.block_fused import can_fuse


@given(
    signals=st.integers(1, 5),
    length=st.integers(1, 300),
    kernel=st.integers(1, 12),
    stride=st.integers(1, 9),
)
@settings(max_examples=200)
def test_every_position_and_every_sample_is_in_a_row(signals, length, kernel, stride):
    """Rows are pairs of positions forward, spans of samples backward: one too few would lose a gradient silently."""
    if length < kernel:
        return
    block = geometry.Block(signals, length, 1, 4, kernel, stride)
    assert block.positions == len(range(0, length - kernel + 1, stride))
    assert 2 * block.pairs >= block.positions > 2 * (block.pairs - 1)
    assert 2 * stride * block.spans >= length > 2 * stride * (block.spans - 1)
    assert block.spans >= block.pairs


@given(rows=st.integers(1, 10**7), tile=st.sampled_from([16, 64, 256]), channels=st.integers(1, 64))
@settings(max_examples=200)
def test_no_program_is_without_a_tile(rows, tile, channels):
    """It would leave a share of zero positions, and their mean is a division by zero."""
    programs, most = geometry.cut(rows, tile, channels), max(geometry.PROGRAMS, geometry.SHARED_VALUES // channels)
    assert 1 <= programs <= min(most, -(-rows // tile))


def test_what_the_kernels_are_not_made_for_is_left_to_the_plain_modules():
    """Other devices and types, and blocks whose filters do not fit into registers."""
    weight = torch.zeros(4, 1, 7)
    assert not can_fuse(torch.zeros(2, 1, 100), [weight], 3)
    assert not can_fuse(torch.zeros(2, 1, 100, dtype=torch.float64), [weight.double()], 3)
    assert geometry.fits(geometry.Block(512, 2500, 12, 64, 7, 3))
    assert not geometry.fits(geometry.Block(512, 2500, 12, 65, 7, 3))
    assert not geometry.fits(geometry.Block(512, 2500, 64, 32, 7, 3))
    assert not geometry.fits(geometry.Block(512, 2500, 1, 4, 7, 512))
    assert not geometry.fits(geometry.Block(700_000, 2500, 1, 4, 7, 3))
