"""What `clocs plugins new` writes passes the linters, and can be built, installed, tested and run."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from scaffolded import NAME, new

from clocs_core.scaffold.naming import DEFAULT_KINDS, KINDS, LONGEST, choose_kinds, name_plugin
from clocs_core.scaffold.rendering import render_plugin, write_plugin

# ----------------------------------------------------------------------------------------------------- what is written


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff and mypy come with the extra `dev`")
@pytest.mark.parametrize("kinds", [KINDS, DEFAULT_KINDS, *((kind,) for kind in KINDS)], ids="-".join)
@pytest.mark.parametrize("distribution", ["clocs-x", "e" * LONGEST])
def test_what_is_written_passes_ruff_and_mypy(kinds: tuple[str, ...], distribution: str, tmp_path: Path) -> None:
    """It is what people learn from."""
    write_plugin(tmp_path / "one", render_plugin(name_plugin(distribution), choose_kinds(kinds)))
    tools = [["ruff", "check", "--no-cache", "."], ["ruff", "format", "--no-cache", "--check", "."]]
    if (kinds, distribution) == (KINDS, "clocs-x"):  # a minute where nothing is cached, all of it for torch
        tools.append(["mypy", "--cache-dir", str(tmp_path / "cache")])
    for tool in tools:
        done = subprocess.run(
            [sys.executable, "-m", *tool], cwd=tmp_path / "one", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


# ------------------------------------------------------------------------------------------------------- from the wheel


@pytest.mark.slow
def test_a_new_plugin_is_built_installed_tested_and_run_within_two_minutes(tmp_path: Path) -> None:
    """All kinds of offers, in an environment of its own that shares only the packages of this one.

    The minutes are of processor time: what else the machine does at the time is no fault of the plugin's.
    """
    began = _seconds()
    folder, home = tmp_path / NAME, tmp_path / "venv"
    assert new(folder, "--kind", ",".join(KINDS)) == 0
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "dist", folder)
    python = _environment(home)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    offline = ("--no-index", "--no-deps", "--quiet", "--disable-pip-version-check")
    _run(sys.executable, "-m", "pip", "--python", python, "install", *offline, wheel)
    listed = json.loads(_run(python, "-m", "clocs_core", "plugins", "--json", cwd=tmp_path))
    (mine,) = [one for one in listed["plugins"] if one["name"] == "scaffolded"]
    assert (mine["distribution"], mine["version"]) == (NAME, "0.1.0")
    told = _run(python, "-m", "clocs_core", "plugins", "test", cwd=folder)
    assert ", 0 failed, 0 skipped." in told
    assert " passed" in _run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)
    small = ("-o", "resamples=10", "--device", "cpu", "--data-root", "data")
    for method, out in (("scaffolded", "run"), ("scaffolded-predict", "predicted"), ("cmsc", "plain")):
        words = ("run", "--plugin", method, "--dataset", "scaffolded", "--epochs", "2", "--out", out)
        _run(python, "-m", "clocs_core", *words, *small, cwd=tmp_path)
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert "scaffolded-accuracy" in {score["metric"] for score in report["scores"]}
    assert report["environment"]["plugin scaffolded"] == f"{NAME} 0.1.0"
    assert _seconds() - began < 120


def _seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _environment(home: Path) -> Path:
    """A virtual environment that sees the packages of this one, editable ones included, by a file in it."""
    venv.create(home, with_pip=False, symlinks=os.name != "nt")
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(_run(python, "-c", ask).strip())
    shared = [path for path in sys.path if path.endswith("site-packages")]
    line = f"import site; list(map(site.addsitedir, {shared!r}))"
    (own / "shared.pth").write_text(f"{line}\n", encoding="utf-8")
    return python


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
