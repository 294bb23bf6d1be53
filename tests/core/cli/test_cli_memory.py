"""The command line tells torch's allocator to keep its memory, early enough and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ASK_WHEN_TORCH_IS_LOADED = """
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print("purge delay", os.environ.get("MIMALLOC_PURGE_DELAY"), flush=True)
            os._exit(0)

sys.meta_path.insert(0, Watch())
from clocs_core.cli import main
main(["run", "--plugin", "cmsc", "--dataset", "demo", "-o", "patients=8", "--epochs", "1"])
print("torch was never loaded")
"""


def in_a_process(program: str, folder: object, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"}
    clean |= {"CLOCS_DATA": f"{folder}/data"} | environment
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=str(folder), env=clean
    )
    return done.stdout.strip().splitlines()[-1]


def test_freed_memory_is_kept_from_the_moment_that_torch_is_loaded(tmp_path):
    """Its allocator reads the variable once, when it is loaded: a line later and a run is a tenth slower."""
    assert in_a_process(ASK_WHEN_TORCH_IS_LOADED, tmp_path) == "purge delay -1"


def test_a_value_of_the_user_stays(tmp_path):
    """Somebody whose memory is short may want pages back."""
    assert in_a_process(ASK_WHEN_TORCH_IS_LOADED, tmp_path, MIMALLOC_PURGE_DELAY="10") == "purge delay 10"


@pytest.mark.parametrize("module", ["clocs_core", "clocs_core.cli", "clocs_core.cli.main", "clocs_plugins.cnn"])
def test_an_import_changes_nothing_of_the_process(module, tmp_path):
    """Whoever uses clocs as a library has an allocator of their own mind."""
    program = f"import os, {module}; print(os.environ.get('MIMALLOC_PURGE_DELAY'))"
    assert in_a_process(program, tmp_path) == "None"
