"""Find which state of the source made a result."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def source_commit(folder: Path) -> str:
    """Read the commit of a source tree, with "-dirty" where files differ; "unknown" outside of a repository.

    Set CLOCS_COMMIT to name the commit where the source tree is a copy without its repository.
    """
    said = os.environ.get("CLOCS_COMMIT")
    if said:
        return said
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # no git
        return "unknown"
    return done.stdout.strip() or "unknown"
