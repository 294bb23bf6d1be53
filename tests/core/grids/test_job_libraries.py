"""What the process that forks loads, and that a fork of it is as good as new: no thread, and CUDA has not begun."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

import clocs_core.grids.job_libraries as job_libraries

LOADED = """
import sys, threading
from clocs_core.grids.job_libraries import load
load()
import torch
from clocs_core.report.page import page_template
print(threading.active_count(), torch.cuda.is_initialized(), page_template.cache_info().currsize)
print(*[name in sys.modules for name in ("clocs_core.workflows.several", "clocs_plugins.simclr", "matplotlib")])
"""


def test_modules_plugins_and_templates_are_loaded_and_nothing_is_started() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["1 False 2", "True True False"]


def test_plugins_of_other_packages_are_left_to_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing one may start a thread. One of ours that is broken is left to them, too."""
    tried: list[str] = []

    def record(name: str) -> None:
        tried.append(name)
        if name == "ours_broken":
            raise RuntimeError("no such library")

    class Own:
        name = "clocs"

    class Other:
        name = "clocs-plugin-ppg"

    points = [EntryPoint("a", f"{module}:name", "clocs") for module in ("ours_broken", "ours", "theirs", "nobodys")]
    for point, dist in zip(points, (Own(), Own(), Other(), None), strict=True):
        vars(point)["dist"] = dist
    monkeypatch.setattr(job_libraries, "installed_entry_points", lambda: points)
    monkeypatch.setattr(job_libraries, "import_module", record)
    job_libraries.load()
    assert [name for name in tried if not name.startswith("clocs_core")] == ["ours_broken", "ours", "triton"]
