"""Run a file of tests by Triton's interpreter, which runs kernels as NumPy: on a machine without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pass_by_interpreter(file: str | Path, *words: str) -> None:
    """Run the tests of a file, in a process of its own: TRITON_INTERPRET must be set before kernels are imported.

    words: more arguments of pytest. Skip the calling test where Triton, or an interpreter that works, is missing.
    """
    triton = pytest.importorskip("triton", reason="Triton is not installed: `pip install 'clocs[fused]'`")
    if tuple(map(int, triton.__version__.split(".")[:2])) < (3, 7):
        pytest.skip('with NumPy 2.4, Triton 3.6 says "only 0-dimensional arrays can be converted"')
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", str(file)]
    done = subprocess.run(
        [*command, "-o", "addopts=--import-mode=importlib", *words],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
