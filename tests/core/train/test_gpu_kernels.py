"""Whether Triton's kernels run here, what is missing if not, and that it is said once."""

from __future__ import annotations

import importlib.util
import shutil
import warnings

import pytest
import torch

from clocs_core.errors import ClocsWarning
from clocs_core.train import gpu_kernels
from clocs_core.train.gpu_kernels import can_run_triton, missing_for_triton

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture
def machine(monkeypatch):
    """A machine with a GPU of some compute capability, and with Triton, a compiler and headers."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.delenv("CPATH", raising=False)
    monkeypatch.setenv("CC", "cc")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(gpu_kernels.Path, "exists", lambda path: "nowhere" not in str(path))
    for cached in (gpu_kernels._missing_tool, gpu_kernels._warn_once):
        cached.cache_clear()
    yield lambda *capability: monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    for cached in (gpu_kernels._missing_tool, gpu_kernels._warn_once):
        cached.cache_clear()


def without(monkeypatch, what):
    if what == "triton":
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    elif what == "compiler":
        monkeypatch.delenv("CC")
        monkeypatch.setattr(shutil, "which", lambda name: None)
    else:
        monkeypatch.setattr(gpu_kernels.sysconfig, "get_paths", lambda scheme: {"include": "nowhere"})


def test_a_gpu_from_ampere_on_runs_them(machine):
    machine(8, 0)
    assert missing_for_triton(GPU) == ""
    assert can_run_triton(GPU)


def test_a_cpu_does_not_and_nobody_is_warned(machine):
    """Nothing can be installed against it."""
    assert missing_for_triton(CPU) == "needs an NVIDIA GPU, and the data is on cpu"
    assert not can_run_triton(CPU)


def test_an_old_gpu_does_not_and_nobody_is_warned(machine):
    machine(7, 5)
    assert missing_for_triton(GPU) == "needs a GPU of compute capability 8.0 or newer"
    assert not can_run_triton(GPU)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("triton", r"needs Triton, which is not installed: `pip install 'clocs\[fused\]'`"),
        ("compiler", "needs a C compiler: there is no gcc or clang on the path, and CC names none"),
        ("headers", "needs Python's header files"),
    ],
)
def test_what_can_be_installed_is_asked_for_once(what, message, machine, monkeypatch):
    """A run that is several times slower than it could be should say why, and not in every step."""
    machine(9, 0)
    without(monkeypatch, what)
    with pytest.warns(ClocsWarning, match=f"kernels are not used, which is slower: that {message}") as found:
        assert not can_run_triton(GPU)
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not can_run_triton(GPU)


def test_the_interpreter_needs_triton_alone(machine, monkeypatch):
    """The tests of kernels run by it, on any machine."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert can_run_triton(CPU)
    without(monkeypatch, "triton")
    assert "needs Triton" in missing_for_triton(CPU)
