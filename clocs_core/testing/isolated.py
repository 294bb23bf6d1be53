"""Runs a job of `child.py` in a fresh interpreter that can import what this one can."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from clocs_core.testing.checks import ConformanceError

PATIENCE = 120  # s: a machine may be busy; what is measured is measured inside


def run_isolated(job: str, *arguments: object) -> Any:
    """The result of a job. Raises ConformanceError where the process ends without one."""
    script = Path(__file__).with_name("child.py")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["PYTHONHASHSEED"] = "12345"  # another order of sets than here, in all likelihood
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result"
        # -P: the script's folder is no place to import from; -B: a plugin that writes is told from Python that does
        command = [sys.executable, "-P", "-B", str(script), str(result)]
        try:
            done = subprocess.run(
                command, input=pickle.dumps((job, arguments)), capture_output=True, env=environment, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            raise ConformanceError(f"a fresh interpreter did not finish within {PATIENCE} s") from None
        if not result.exists():
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise ConformanceError(
                f"a fresh interpreter ended with {done.returncode}: {' '.join(last) or 'no message'}"
            )
        return pickle.loads(result.read_bytes())
