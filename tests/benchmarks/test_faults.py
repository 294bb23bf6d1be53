"""The fault campaign itself: faults strike where they are told to, and broken promises are counted as such."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from faults.campaign import _in_lanes, _refuse_other_campaign
from faults.file_faults import restart_with_library
from faults.mutations import ANY, mutate
from faults.processes import MEMORY, SECONDS, Ended
from faults.verdicts import Trial, differing, judge_end, tabulate

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="faults are put in by LD_PRELOAD")

STRIKE = """
import os, sys
sys.path.insert(0, {benchmarks!r})
from pathlib import Path
from faults.file_faults import FileFault, operations_seen
folder = Path(sys.argv[1])
FileFault(folder, sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])).arm()
try:
    with open(folder / "a", "wb") as file:          # operation 0
        file.write(b"0123456789")                   # operation 1
        file.flush()
        os.fsync(file.fileno())                     # operation 2
    os.replace(folder / "a", folder / "b")          # operation 3
    (folder / "b").read_bytes()                     # reads
finally:
    print(operations_seen())
"""


def strike(tmp_path: Path, kind: str, action: str, operation: int, error: int = 0) -> tuple[int, Path]:
    folder = tmp_path / "folder"
    folder.mkdir()
    script = STRIKE.format(benchmarks=str(Path(__file__).parents[2] / "benchmarks"))
    given = [str(folder), kind, action, str(operation), str(error)]
    return restart_with_library(tmp_path, [sys.executable, "-c", script, *given]), folder


@linux
def test_a_campaign_goes_on_after_the_trials_that_stand_in_its_log(tmp_path: Path) -> None:
    """It takes more than an hour, and machines are switched off."""

    def draw(number: int) -> Trial:
        (tmp_path / f"made-{number}").touch()
        return Trial("group", "subject", str(number), "equal", 0.0, 0)

    trials = [lambda folder, number=number: draw(number) for number in range(7)]
    log = tmp_path / "log"
    log.mkdir()
    for lane, number in ((0, 0), (0, 2), (1, 1)):
        with open(log / f"lane-{lane}.jsonl", "a") as file:
            file.write(Trial("group", "subject", str(number), "equal", 0.0, 0).line() + "\n")
    (scratch := tmp_path / "scratch").mkdir()
    done = _in_lanes(trials, scratch, log, 2, None)
    assert sorted(trial.repeat for trial in done) == [*"0123456"]
    assert sorted(path.name for path in tmp_path.glob("made-*")) == ["made-3", "made-4", "made-5", "made-6"]


def test_the_trials_of_another_campaign_are_not_gone_on_with(tmp_path: Path) -> None:
    _refuse_other_campaign(tmp_path / "log", {"seed": 0})
    _refuse_other_campaign(tmp_path / "log", {"seed": 0})
    with pytest.raises(RuntimeError, match="was begun with other arguments or another source"):
        _refuse_other_campaign(tmp_path / "log", {"seed": 1})


@linux
def test_operations_are_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _ = strike(tmp_path, "changes", "count", -1)
    assert code == 0
    assert capfd.readouterr().out == "4\n"


@linux
@pytest.mark.parametrize(
    ("action", "operation", "left"),
    [("kill", 0, {}), ("kill", 1, {"a": b""}), ("tear", 1, {"a": b"01234"}), ("kill", 3, {"a": b"0123456789"})],
)
def test_a_kill_strikes_before_the_operation_or_in_the_middle_of_a_write(
    tmp_path: Path, action: str, operation: int, left: dict[str, bytes]
) -> None:
    code, folder = strike(tmp_path, "changes", action, operation)
    assert code == -signal.SIGKILL
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == left


@linux
def test_a_failing_operation_raises_its_error_in_the_program(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _ = strike(tmp_path, "changes", "fail on", 1, 28)
    assert code == 1
    assert "No space left on device" in capfd.readouterr().err


@linux
def test_a_failing_read_is_told_from_a_failing_write(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, folder = strike(tmp_path, "reads", "fail", 0, 5)
    assert code == 1
    assert (folder / "b").exists()
    assert "Input/output error" in capfd.readouterr().err


@pytest.mark.parametrize("way", sorted(set(ANY), key=lambda way: way.__name__), ids=lambda way: way.__name__)
def test_each_mutation_repeats_by_its_seed(way: object) -> None:
    assert callable(way)
    data = b"II 200 mV\nfirst 12.5\nsecond -3\n" * 20
    assert way(data, random.Random(3)) == way(data, random.Random(3))


def test_a_mutated_file_always_differs() -> None:
    for seed in range(300):
        for data in (b"", b"a", b"\x00" * 50, b"12 words\n" * 9):
            assert mutate(data, random.Random(seed))[0] != data


CALM = Ended(0, 1.0, 1 << 20, "done")


@pytest.mark.parametrize(
    ("ended", "verdict"),
    [
        (CALM, "equal"),
        (Ended(2, 1.0, 1, "Error: no such lead"), "refused"),
        (Ended(1, 1.0, 1, "Traceback (most recent call last)\nKeyError"), "traceback"),
        (Ended(1, 1.0, 1, "Error: Unforeseen error: KeyError: 'a'"), "traceback"),
        (Ended(-signal.SIGSEGV, 1.0, 1, ""), "traceback"),
        (Ended(-signal.SIGKILL, SECONDS + 1, 1, "", work=0.1), "hang"),
        (Ended(-signal.SIGKILL, SECONDS + 1, 1, "", work=SECONDS), "hang"),
        (Ended(0, SECONDS + 1, 1, "", work=SECONDS / 2), "equal"),  # on a busy machine
        (Ended(0, 1.0, MEMORY + 1, ""), "memory"),
        (Ended(1, 1.0, 1, ""), "unclear message"),
    ],
)
def test_ends_are_judged(ended: Ended, verdict: str) -> None:
    assert judge_end(ended)[0] == verdict


def test_results_differ_by_name() -> None:
    assert differing({"a": "1", "b": "2"}, {"a": "1", "b": "2"}) == ""
    assert differing({"a": "1"}, {"a": "1", "b": "2"}) == "b: missing"


def test_trials_are_counted_by_subject() -> None:
    trials = [Trial("kill", "run", str(n), "equal" if n else "hang", float(n), n << 20) for n in range(3)]
    (row,) = tabulate(trials)
    assert row["verdicts"] == {"equal": 2, "hang": 1}
    assert (row["trials"], row["longest_s"], row["largest_MiB"]) == (3, 2.0, 2)


@linux
@pytest.mark.slow
def test_half_a_minute_of_the_campaign_breaks_no_promise(tmp_path: Path, test_data: Path) -> None:
    """All groups, mixed; the whole campaign is in benchmarks/results/campaign.json."""
    script = Path(__file__).parents[2] / "benchmarks" / "campaign.py"
    table = tmp_path / "table.json"
    done = subprocess.run(
        [sys.executable, str(script), "--seconds", "30", "--seed", "1", "--jobs", "2", "--json", str(table)],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "CLOCS_TEST_DATA": str(test_data)},
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert json.loads(table.read_text())["trials"] >= 10
