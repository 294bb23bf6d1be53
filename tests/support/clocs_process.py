"""The command line as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_clocs(*words: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `clocs` with these words, in a folder, and with these variables set besides those of this process."""
    command = [sys.executable, "-m", "clocs_core", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=os.environ | environment)
