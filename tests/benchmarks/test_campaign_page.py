"""docs/reliability.md shows the committed campaign, to the last trial, and what it found is mended."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path

import campaign
import pytest
from faults import disturbances
from faults.page import table_of

ROOT = Path(__file__).parents[2]
FILE = ROOT / "benchmarks/results/campaign.json"
FOUND = json.loads(FILE.read_text())


def count(group: str) -> int:
    return sum(row["trials"] for row in FOUND["table"] if row["group"] == group)


def test_the_page_has_the_table_and_the_facts_of_the_committed_campaign(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["campaign.py", "--table", str(FILE)])
    assert campaign.main() == 0
    page = (ROOT / "docs/reliability.md").read_text()
    assert capsys.readouterr().out in page
    words = " ".join(page.split())
    versions = FOUND["versions"]
    assert (
        f"{FOUND['trials']:,} trials, {FOUND['date']}, {FOUND['machine']}, Python {versions['python']}, torch "
        f"{versions['torch']}, seed 0. In {len(FOUND['broken'])} trials a promise was broken." in words
    )


def test_the_committed_campaign_is_whole_and_what_it_found_is_mended() -> None:
    assert count("kill") >= 1_000
    assert count("mutated input") >= 10_000
    assert count("damaged file") >= 2_000
    found = {verdict for row in FOUND["table"] for verdict in row["verdicts"]}
    assert found.isdisjoint({"traceback", "hang", "memory", "not resumable"})
    names = ("group", "subject", "repeat")
    again = [[one[name] for name in names] for one in FOUND["made_again"]]
    assert again == [[one[name] for name in names] for one in FOUND["broken"]]
    assert {one["verdict"] for one in FOUND["made_again"]} <= {"equal", "refused"}
    assert max(row["largest_MiB"] for row in FOUND["table"]) < 2_048


def test_a_row_counts_what_is_neither_equal_nor_refused() -> None:
    row = {"group": "kill", "subject": "run", "verdicts": {"equal": 3, "hang": 1, "refused": 2}}
    document = {"table": [{**row, "longest_s": 1.25, "largest_MiB": 1500}]}
    assert table_of(document).splitlines()[2:] == [
        "| process killed | run | 6 | 3 | 2 | 1 | 1.2 s | 1,500 MiB |",
        "| all |  | 6 | 3 | 2 | 1 | 1.2 s | 1,500 MiB |",
    ]


@pytest.mark.parametrize(
    ("group", "repeat", "name", "given"),
    [
        ("kill", "operation 7", "kill_at", [7, False]),
        ("kill", "operation 7 torn", "kill_at", [7, True]),
        ("kill", "moments 0.125 0.250 0.500", "kill_at_moments", [[0.125, 0.25, 0.5]]),
        ("full disk", "operation 9", "fill_disk", [9]),
        ("failing read", "operation 83 ESTALE", "fail_read", [83, errno.ESTALE]),
        ("clock", "seed 11", "jump_clock", [11]),
    ],
)
def test_a_trial_is_made_again_by_its_name(
    group: str, repeat: str, name: str, given: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disturbances, name, lambda *one, **more: [*one, *more.values()])
    assert disturbances.again(group, repeat) == given


def test_other_trials_are_not_made_again() -> None:
    with pytest.raises(ValueError, match="'mutated input' are made again with their seed alone: seed 3"):
        disturbances.again("mutated input", "seed 3")
