"""A worker process ends with the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

WORKER = "import os, time; from clocs_core.worker_processes import end_with; end_with({parent}); {then}"


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_worker_whose_parent_is_killed_ends_and_a_worker_whose_parent_lives_goes_on() -> None:
    worker = WORKER.format(parent="os.getppid()", then="print(os.getpid(), flush=True); time.sleep(60)")
    start = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        time.sleep(1.2)  # it looks twice a second
        assert is_alive(process)
        parent.kill()
    ends = time.monotonic() + 30
    while is_alive(process) and time.monotonic() < ends:
        time.sleep(0.1)
    assert not is_alive(process)


def test_ctrl_c_is_left_to_the_parent() -> None:
    """A terminal sends it to all of them; the parent ends its workers in order."""
    then = "os.kill(os.getpid(), 2); time.sleep(0.1); print('goes on')"
    done = subprocess.run(
        [sys.executable, "-c", WORKER.format(parent="os.getppid()", then=then)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "goes on\n"), done.stderr
    assert signal.SIGINT == 2
