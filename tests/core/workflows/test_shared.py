"""Recordings that several runs share: read once for plans that ask for the same, and frames held once for all."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from fake_frames import fake_cohort
from fake_plans import planned

from clocs_core.workflows.shared import SharedRecordings


def test_plans_that_differ_in_the_seed_or_the_method_share_recordings(tmp_path: Path) -> None:
    shared, cohort = SharedRecordings(), fake_cohort(tmp_path)
    found = shared.get(planned(), lambda: cohort)
    other = planned("seed=3", "learning_rate=0.5")
    assert shared.get(other, lambda: pytest.fail("it was read already")) is found


@pytest.mark.parametrize("assignment", ["people=8", "split_seed=1", "pretrain_framing.sampling_rate=150"])
def test_plans_that_ask_for_other_recordings_read_them_and_share_equal_frames(tmp_path: Path, assignment: str) -> None:
    """Another split, or another column, does not need another copy of the frames on the device."""
    shared = SharedRecordings()
    first = shared.get(planned(), lambda: fake_cohort(tmp_path))
    again = fake_cohort(tmp_path)
    assert again.pretrain is not first.pretrain
    second = shared.get(planned(assignment), lambda: again)
    assert second is not first
    assert second.pretrain is first.pretrain
    assert second.evaluate is first.pretrain
    renamed = attrs.evolve(again.pretrain, channels=("a", "b", "c"))
    third = shared.get(planned("split_seed=9"), lambda: attrs.evolve(again, pretrain=renamed))
    assert third.pretrain is renamed
