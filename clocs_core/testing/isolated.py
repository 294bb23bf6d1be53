"""Run a job of `child.py` in a fresh interpreter with this one's import path."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from clocs_core.testing.checks import ConformanceError

PATIENCE = 120  # s: long, because the machine may be busy; times are measured inside the process


def run_isolated(job: str, *arguments: object) -> Any:
    """Return the result of a job. Raise ConformanceError if the process ends without one."""
    script = Path(__file__).with_name("child.py")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["PYTHONHASHSEED"] = "12345"  # very likely another order of sets than in this process
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result"
        # -P: do not import from the script's folder. -B: Python writes no .pyc, so every write is the plugin's.
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
