"""Small damaged files, hundreds of each kind: a reader returns or says a sentence, in little time and memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mutated_files import CASES, broken_promises, damage

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by RLIMIT_AS and /proc")


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_file_costs_a_sentence_and_no_more(tmp_path: Path, name: str) -> None:
    assert [str(problem) for problem in broken_promises(CASES[name], tmp_path)] == []


def test_the_same_number_makes_the_same_damage() -> None:
    raw = bytes(range(200))
    made = [damage(raw, 0, number) for number in range(50)]
    assert made == [damage(raw, 0, number) for number in range(50)]
    assert len(set(made)) > 45
