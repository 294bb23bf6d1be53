"""The benchmark of patient-NCE runs, on a CPU too, and gives no time to what computes something else."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import patient_nce as benchmark
import pytest
import step_clock

from clocs_plugins.contrastive_losses.patient_nce import patient_nce


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(step_clock, "SAMPLE_MS", 0.1)
    monkeypatch.setattr(step_clock, "MOST_SECONDS", 0.01)

    def go(*arguments):
        where = ("--device", "cpu", "--impl", "chunked", "--out", str(tmp_path / "found.json"))
        status = benchmark.main([*where, *arguments])
        return status, json.loads((tmp_path / "found.json").read_text()), capsys.readouterr().out

    return go


def test_what_it_writes_has_agreement_time_machine_and_versions(run):
    """A time that nobody can place is worth nothing."""
    status, found, printed = run("--sizes", "64,16,2", "--batches", "32")
    assert status == 0
    assert {"date", "device", "versions", "sizes", "two_views", "seconds"} <= set(found)
    asked = "--device cpu --impl chunked --out found.json --sizes 64,16,2 --batches 32"
    assert found["command"] == f"python benchmarks/patient_nce.py {asked}"
    (row,) = found["sizes"]
    assert list(row["times"]) == ["chunked", "reference compiled"]
    for one in row["times"].values():
        assert one["gradient_error"] < 1e-5
        low, high = one["quartiles_ms"]
        assert 0 < low <= one["median_ms"] <= high
    assert found["two_views"][0]["nt_xent_errors"]["nt-xent chunked"] < 1e-5
    assert "chunked" in printed


def test_others_are_left_out_when_there_is_no_time_left(run):
    """Ours is measured first, so that a short lease of a GPU is not spent on others."""
    _, found, _ = run("--sizes", "64,16,2", "--batches", "--budget", "-1")
    assert found["sizes"][0]["times"]["reference compiled"] == "not measured: out of time"


def test_what_disagrees_with_float64_gets_no_time(run, monkeypatch):
    """Speed of a wrong result is no speed."""
    wrong = {"temperature": 0.11, "impl": "chunked"}
    monkeypatch.setattr(benchmark, "step_of", partial(off, benchmark.step_of, wrong))
    status, found, _ = run("--sizes", "64,16,2", "--batches")
    assert status == 1
    assert found["sizes"][0]["times"]["chunked"].startswith("disagrees with float64")


def off(step_of, wrong, loss, z):
    """A step of another temperature, where the step is ours."""
    return step_of(partial(loss, **wrong) if isinstance(loss, partial) and loss.func is patient_nce else loss, z)


SWEEP = """
import sys
import loss_tiles, patient_nce, step_clock

for name in ("SUMS", "GRADIENT", "PARTS"):
    setattr(loss_tiles, name, getattr(loss_tiles, name)[:1])
step_clock.SAMPLE_MS, step_clock.MOST_SECONDS = 0.1, 0.01
raise SystemExit(patient_nce.main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the kernels need Triton")
def test_the_sweep_ranks_the_tiles_of_both_kernels(tmp_path):
    """By Triton's interpreter, which needs a process of its own: times that mean nothing, of kernels that run."""
    place = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(benchmark.__file__).parent)}
    words = ("--sweep", "--out", "sweep.json", "--device", "cpu", "--sizes", "16,16,2")
    done = subprocess.run(
        [sys.executable, "-c", SWEEP, *words],
        cwd=tmp_path,
        env={**os.environ, **place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads((tmp_path / "sweep.json").read_text())["sweep"]
    assert row["size"] == [16, 16, 2]
    assert len(row["forward_ms"]) == len(row["backward_ms"]) == 2  # a tile that fails is told of and left out
    assert list(row["forward_ms"].values()) == sorted(row["forward_ms"].values())
