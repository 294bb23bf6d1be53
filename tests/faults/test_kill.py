"""kill -9 at random moments: nothing is broken, and going on ends as if nothing had happened."""

import json
import subprocess
import sys
from pathlib import Path

import kill_and_resume
import pytest


@pytest.mark.slow
def test_five_kills_at_random_moments_leave_nothing_broken_and_change_no_result():
    """In a process of its own: the runs are forked from one that has imported torch and computed nothing with it."""
    script = Path(kill_and_resume.__file__)
    done = subprocess.run(
        [sys.executable, str(script), "--kills", "5", "--seed", "1"], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tally = json.loads(done.stdout.splitlines()[-1])
    assert tally["kills"] == 5
