"""A machine is told by its processor, not by its name."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from clocs_core.grids.machine import cpu_model, describe_machine, gpu_models, runs_per_job


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ("Vendor ID:    ARM\nModel name:   Neoverse-N1\nModel:  1\n", "Neoverse-N1"),
        ("BIOS Model name:  other\nModel name:  Intel(R) Xeon(R) CPU @ 2.20GHz  \n", "Intel(R) Xeon(R) CPU @ 2.20GHz"),
        ("machdep.cpu.brand_string: Apple M2\n", "Apple M2"),
        ("Model name:   -\nModel: 1\n", ""),
        ("Model name:\nModel: 1\n", ""),
        ("", ""),
    ],
)
def test_the_processor_is_found_where_the_system_knows_it(said: str, model: str) -> None:
    """In containers lscpu may answer with a dash or with nothing."""
    assert cpu_model(said) == model


@pytest.mark.parametrize(
    ("said", "models"),
    [
        ("NVIDIA H200\n", "NVIDIA H200"),
        ("NVIDIA A100-SXM4-40GB\nNVIDIA A100-SXM4-40GB\nTesla T4\n", "2 x NVIDIA A100-SXM4-40GB, Tesla T4"),
        ("\n", ""),
    ],
)
def test_gpus_of_one_model_are_counted(said: str, models: str) -> None:
    assert gpu_models(said) == models


@pytest.mark.parametrize(("code", "told"), [(0, True), (9, False)])
def test_gpus_stand_first_where_the_driver_answers(
    code: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a driver, nvidia-smi prints its complaint where it would print names."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho Some GPU\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert describe_machine().startswith("Some GPU, ") == told


def test_the_name_of_the_machine_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are passed on. And where no program knows the processor, cores and system are left."""
    assert describe_machine().endswith(f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}")
    monkeypatch.setenv("PATH", "")
    assert describe_machine() == f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    assert platform.node() not in describe_machine()


def test_a_job_on_a_gpu_makes_five_runs_where_nobody_says(tmp_path: Path) -> None:
    here, nowhere = tmp_path, tmp_path / "none"
    found = [runs_per_job(device, driver) for device in ("cuda", "auto", "cpu") for driver in (here, nowhere)]
    assert found == [5, 5, 5, 1, 1, 1]
