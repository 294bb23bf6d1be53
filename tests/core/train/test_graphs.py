"""Which graphs an epoch has. What they hold is tested where they are captured: test_captured_logic.py."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.train.graphs import split_epoch


@given(count=st.integers(1, 500), batch=st.integers(1, 40), together=st.integers(1, 12))
def test_the_replays_of_an_epoch_are_its_batches(count, batch, together):
    """In order, only the last may be smaller, and there are at most three graphs to capture."""
    replays = split_epoch(count, batch, together)
    sizes = [replay.size for replay in replays for _ in range(replay.steps)]
    assert sizes == [len(rows) for rows in torch.arange(count).split(batch)]
    assert len(set(replays)) <= 3
    assert all(replay.steps in (1, together) for replay in replays)
