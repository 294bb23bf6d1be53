"""Build the library that fails at one chosen file operation, and arm it in this process."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

import attrs

SOURCE = Path(__file__).with_name("file_faults.c")

Kind = Literal["changes", "reads"]
Action = Literal["count", "kill", "tear", "fail", "fail on"]
_KINDS: dict[Kind, int] = {"changes": 1, "reads": 2}
_ACTIONS: dict[Action, int] = {"count": 0, "kill": 1, "tear": 2, "fail": 3, "fail on": 4}  # as in the C source


@attrs.frozen
class FileFault:
    """One fault: the `operation`-th file operation of a kind below a folder.

    kind: operations that change files (open for writing, write, sync, rename, remove …), or that read them.
    action: "kill" dies before the operation, "tear" in the middle of a write, "fail" returns the error once, "fail on"
    for this operation and all that follow, as a full disk does.
    """

    folder: Path
    kind: Kind = "changes"
    action: Action = "count"
    operation: int = -1
    error: int = errno.ENOSPC

    def arm(self) -> None:
        """Set this fault for the process."""
        _library().arm(
            os.fsencode(self.folder),
            _KINDS[self.kind],
            _ACTIONS[self.action],
            ctypes.c_long(self.operation),
            self.error,
        )


def operations_seen() -> int:
    """Disarm the fault. Returns the number of operations of its kind since it was armed."""
    return int(_library().disarm())


def is_loaded() -> bool:
    """Tell whether this process was started with the library."""
    return hasattr(ctypes.CDLL(None), "disarm") and "file_faults" in os.environ.get("LD_PRELOAD", "")


def restart_with_library(scratch: Path, command: list[str]) -> int:
    """Build the library and run `command` in a new process that has it. Returns its exit code."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not sys.platform.startswith("linux") or compiler is None:
        raise SystemExit("The campaign needs Linux and a C compiler: file operations are intercepted by LD_PRELOAD.")
    library = scratch / "file_faults.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment).returncode


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
