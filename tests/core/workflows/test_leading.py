"""An evaluation in several processes, with threads in their place: process 0 names each classifier, all make it."""

from __future__ import annotations

import pytest
import torch

from clocs_core.testing.threads import on_ranks
from clocs_core.workflows.leading import Lead, is_begun, make_what_is_named

CPU = torch.device("cpu")
KEYS = [("linear", "cmsc", 0.25), ("finetune", "random", 1.0)]


class _Maker:
    """Notes what it is asked to make."""

    device = CPU

    def __init__(self) -> None:
        self.made: list[object] = []

    def make(self, key, checkpoint=None):
        self.made.append((key, checkpoint))


def test_all_make_what_is_named_in_one_order(tmp_path):
    def work(group):
        if group.rank == 0:
            lead = Lead(group, CPU)
            lead.begin()
            lead.announce(KEYS[0], None)
            lead.announce(KEYS[1], tmp_path / "a")
            lead.dismiss()
            return None
        assert is_begun(group, CPU)
        maker = _Maker()
        make_what_is_named(maker, group)
        return maker.made

    _, *others = on_ranks(3, work)
    assert others == [[(KEYS[0], None), (KEYS[1], tmp_path / "a")]] * 2


def test_where_process_0_finds_a_finished_evaluation_the_others_have_nothing_to_do():
    def work(group):
        if group.rank == 0:
            return Lead(group, CPU).dismiss()
        return is_begun(group, CPU)

    assert on_ranks(2, work) == [None, False]


@pytest.mark.parametrize("tell", [Lead.begin, Lead.dismiss, lambda lead: lead.announce(KEYS[0], None)])
def test_a_process_by_itself_tells_nobody(tell):
    tell(Lead(None, CPU))
