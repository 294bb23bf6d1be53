"""Run a command of clocs in a fork of this process, with limits of time and memory, and say how it ended.

This process has imported everything and computed nothing, so that a trial spends its time in the command and not in
imports, and inherits no threads of a computation.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from faults.file_faults import FileFault, operations_seen

SECONDS = 20.0  # a process that works or waits for so long counts as hanging; undisturbed ones work for 4 s at most
_IDLE = 0.1  # share of a processor below which a process waits; on a busy machine it gets less than a whole one
PATIENCE = 300.0  # seconds for an undisturbed process, on a busy machine too
MEMORY = 2 << 30  # bytes resident; the imports alone take 0.4 GiB
_ADDRESSES = 6 << 30  # bytes of addresses beyond those of this process, so that a runaway fails before the machine does
_NOBODY_FORESAW = ("Traceback (most recent call last)", "Unforeseen error")

Work = Callable[[], int]


@attrs.frozen
class Ended:
    """How a process ended: its exit code (negative: the signal), duration, resident memory and printed text.

    work: seconds of a processor. operations: file operations that were counted.
    """

    code: int
    seconds: float
    memory: int
    text: str
    work: float = 0.0
    operations: int = 0

    def fault(self) -> str:
        """Name what no process may do, whatever its input: a traceback, a hang, or too much memory. Empty if none."""
        if self.work >= SECONDS or (self.seconds >= SECONDS and self.work < _IDLE * self.seconds):
            return "hang"
        if self.memory > MEMORY:
            return "memory"
        if any(sign in self.text for sign in _NOBODY_FORESAW) or self.code in (-signal.SIGSEGV, -signal.SIGABRT):
            return "traceback"
        return ""


@attrs.frozen
class Started:
    """A process that runs."""

    number: int
    log: Path
    began: float

    def kill(self) -> None:
        """End it with SIGKILL."""
        os.kill(self.number, signal.SIGKILL)

    def wait(self, seconds: float = 5 * SECONDS) -> Ended:
        """Wait for its end; kill it after so many seconds."""
        while True:
            number, status, used = os.wait4(self.number, os.WNOHANG)
            took = time.monotonic() - self.began
            if number:
                break
            if took > seconds:
                self.kill()
            time.sleep(0.002)
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        counted = self.log.with_suffix(".operations")
        operations = int(counted.read_text()) if counted.exists() else 0
        work = used.ru_utime + used.ru_stime
        return Ended(os.waitstatus_to_exitcode(status), took, used.ru_maxrss << 10, text, work, operations)


def start(work: Work, log: Path, fault: FileFault | None = None) -> Started:
    """Fork a process that does `work`, with an armed fault if there is one. It prints into `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    began = time.monotonic()
    child = os.fork()
    if child:
        return Started(child, log, began)
    code = 70
    try:
        _redirect(log)
        _limit_memory()
        if fault is not None:
            fault.arm()
        try:
            code = work()
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        if fault is not None:
            log.with_suffix(".operations").write_text(str(operations_seen()))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def clocs(*arguments: str) -> Work:
    """Return the work of one command line."""

    def work() -> int:
        from clocs_core.cli import main

        return main(arguments)

    return work


def run(work: Work, log: Path, fault: FileFault | None = None, seconds: float = 5 * SECONDS) -> Ended:
    """Do `work` in a process of its own, and wait for it."""
    return start(work, log, fault).wait(seconds)


def _redirect(log: Path) -> None:
    # Line by line, so that what was printed before a kill is there. Tests may have replaced sys.stdout.
    file = open(log, "w", buffering=1)  # noqa: SIM115  (lives as long as the process)
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
    sys.stdout = sys.stderr = file


def _limit_memory() -> None:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _ADDRESSES, used + _ADDRESSES))


def import_everything() -> None:
    """Import what commands import, and compute nothing."""
    import matplotlib.backends.backend_agg
    import matplotlib.pyplot  # noqa: F401
    import openpyxl  # noqa: F401
    import scipy.io
    import scipy.signal  # noqa: F401
    import sklearn.linear_model  # noqa: F401
    import tensorboard.compat.proto.summary_pb2  # noqa: F401
    import torch._dynamo  # noqa: F401  (2 s; the losses ask torch.compiler for a decorator)
    import wfdb  # noqa: F401

    import clocs_core.api.runs
    import clocs_core.cli
    import clocs_core.workflows.evaluate
    import clocs_core.workflows.pretrain  # noqa: F401
    from clocs_core.plugins.session import installed_session

    installed_session()  # the plugins' modules
