"""Worker processes: a script without a main guard prepares recordings once, and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_recordings import FakeOptions, fake_entries, fake_load

from clocs_core.contracts.records import Framing
from clocs_core.data.shards import Convention, Job, run_jobs

SUPPORT = Path(__file__).parents[2] / "support"

SCRIPT = """
import os, sys
from pathlib import Path
from fake_recordings import FakeOptions, fake_entries, fake_load
from clocs_core.contracts.records import Framing
from clocs_core.data.preparation import prepare

print("started", os.getpid(), flush=True)
folder = Path(sys.argv[1])
prepared = prepare(
    fake_entries(300), fake_load, FakeOptions(log=folder / "log", samples=40), Framing(frame_samples=8),
    dataset="fake", revision=1, channels=(), folder=folder / "prepared", workers=3, progress=lambda done, total: None,
)
print("prepared", len(prepared.records), flush=True)
"""


@pytest.mark.timeout(120)
def test_a_script_without_a_main_guard_is_not_started_again_by_its_workers(tmp_path: Path) -> None:
    """With multiprocessing's spawn it was: every worker ran the script, and all waited for one lock for ever."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"PYTHONPATH": str(SUPPORT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("started") == 1
    assert done.stdout.splitlines()[-1] == "prepared 300"
    workers = {line.split()[1] for line in (tmp_path / "log").read_text().splitlines()}
    assert len(workers) >= 2  # the recordings were read by other processes, but for the first


def test_a_finished_shard_of_other_recordings_is_made_again(tmp_path: Path) -> None:
    """Their files are whole, so only the names of the recordings can tell."""
    entries = fake_entries(6)
    how = (fake_load, FakeOptions(), Framing(frame_samples=8), Convention(("L0", "L1"), "mV"))
    first = Job(tmp_path / "shard-00000", tuple(entries[:3]), *how)
    run_jobs([first], 1, lambda done, total: None, "fake")
    assert first.done()
    assert not Job(first.path, tuple(entries[3:]), *how).done()
    assert not Job(first.path, tuple(entries[2::-1]), *how).done()
