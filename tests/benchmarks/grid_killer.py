"""Runs a grid, kills it with SIGKILL at random moments, starts it again, and lets the last one finish.

    grid_killer.py KILLS SEED OUT …      what follows are the arguments of run_all.py

Exits with 3 where a grid was finished before it could be killed. Every other kill takes the commands that the grid
started with it. Moments are counted from the first word in FAKE_LOG, every fifth from the start of the grid: on a busy
machine the start alone takes half a second, and kills that all fall into it would show nothing. Grids are forked from
a process that has imported everything, so that the time goes into running them.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import run_all

import clocs_core.grids.page

assert clocs_core.grids.page  # imported here, so that children need not


def main() -> int:
    kills, seed, arguments = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    rng, survived = random.Random(seed), False
    for trial in range(kills):
        said = log_size()
        child = start(arguments)
        if trial % 5:
            wait_for_a_job(said)
        time.sleep(rng.uniform(0.0, 0.25))
        survived |= os.waitpid(child, os.WNOHANG)[0] != 0
        if survived:
            break
        (os.killpg if trial % 2 else os.kill)(child, signal.SIGKILL)
        os.waitpid(child, 0)
    _, status = os.waitpid(start(arguments), 0)
    return 3 if survived else os.waitstatus_to_exitcode(status)


def log_size() -> int:
    log = Path(os.environ["FAKE_LOG"])
    return log.stat().st_size if log.exists() else 0


def wait_for_a_job(said: int) -> None:
    """Until a command of a grid has said something, or for so long that none will."""
    patience = time.monotonic() + 20
    while log_size() == said and time.monotonic() < patience:
        time.sleep(0.005)


def start(arguments: list[str]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setpgid(0, 0)
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            code = run_all.main(arguments)
    finally:
        os._exit(code)


if __name__ == "__main__":
    raise SystemExit(main())
