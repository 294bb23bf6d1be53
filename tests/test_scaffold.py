"""What `clocs plugins new` writes works at once, and `clocs plugins test` tells good plugins from broken ones."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_offers import tiny
from fake_plugins import fake_point

from clocs_core import API_VERSION
from clocs_core.cli import main
from clocs_core.scaffold.naming import DEFAULT_KINDS, KINDS, LONGEST, choose_kinds, name_plugin
from clocs_core.scaffold.rendering import render_plugin, write_plugin
from clocs_core.testing.project import open_project

NAME = "clocs-plugin-scaffolded"
PACKAGE = "clocs_plugin_scaffolded"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what a test has imported from its folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]


def new(folder: Path, *arguments: str) -> int:
    return main(["plugins", "new", NAME, "--out", str(folder), *arguments], [])


# ------------------------------------------------------------------------------------------------------ names and kinds


def test_a_name_that_is_taken_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two plugins with one name neither would be loaded."""
    points = [fake_point("eeg"), fake_point("other", clocs_datasets=lambda: [tiny()])]
    for name, taken in (("clocs-eeg", "plugin 'eeg'"), ("clocs-tiny", "dataset 'tiny'"), ("torch", "module 'torch'")):
        assert main(["plugins", "new", name, "--out", str(tmp_path / "x")], points) == 2
        assert capsys.readouterr().err.startswith(f"Error: A {taken} is ")
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------------------------------- what is written


def test_a_folder_that_is_there_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    assert new(tmp_path / "mine") == 2
    assert "already exists and is not changed" in capsys.readouterr().err
    assert list((tmp_path / "mine").iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_plugin_of_one_kind_offers_that_kind_and_is_written_for_this_version(kind: str, tmp_path: Path) -> None:
    """The parts of the card and of the pages must fit together in every choice."""
    assert new(tmp_path / "one", "--kind", kind) == 0
    project = open_project(tmp_path / "one", [])
    assert tuple(offer.kind for offer in project.offers()) == choose_kinds([kind])
    (plugin,) = project.plugins
    assert (plugin.name, plugin.distribution, plugin.version) == ("scaffolded", NAME, "0.1.0")
    assert f"{API_VERSION[0]}.{API_VERSION[1]}" == plugin.module.CLOCS_API
    assert Path(plugin.module.__file__ or "").is_relative_to(tmp_path)


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


# ------------------------------------------------------------------------------------------------------ plugins test


def test_the_checks_can_be_listed_with_their_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new(tmp_path / "one", "--kind", "metric")
    capsys.readouterr()
    assert main(["plugins", "test", str(tmp_path / "one"), "--list"], []) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "metric:scaffolded-accuracy:weight-scale  Doubling all weights does not change the score." in lines
    assert any(line.startswith(f"plugin:{PACKAGE}:light  Importing it") for line in lines)


def test_a_good_plugin_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The metric, for it needs no torch; the slow test below has all kinds."""
    new(tmp_path / "one", "--kind", "metric")
    capsys.readouterr()
    assert main(["plugins", "test", str(tmp_path / "one")], []) == 0
    out = capsys.readouterr().out
    assert "metric:scaffolded-accuracy" in out
    assert ", 0 failed, 0 skipped." in out


def test_a_broken_plugin_fails_with_what_to_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new(tmp_path / "one", "--kind", "metric")
    accuracy = tmp_path / "one" / "src" / PACKAGE / "accuracy.py"
    text = accuracy.read_text(encoding="utf-8")
    assert "weight[right]" in text
    accuracy.write_text(text.replace("weight[right]", "weight[~right]"), encoding="utf-8")
    capsys.readouterr()
    assert main(["plugins", "test", str(tmp_path / "one"), "--check", "perfect-is-best", "--check", "number"], []) == 1
    out = capsys.readouterr().out
    assert "FAILED metric:scaffolded-accuracy:perfect-is-best: expected the highest score for perfect predict" in out
    assert "Higher must be better; negate an error." in out
    assert "1 passed, 1 failed, 0 skipped." in out


def test_a_data_set_with_files_is_read_where_its_files_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check that could not be made is shown as such, with its reason."""
    new(tmp_path / "one", "--kind", "dataset")
    recordings = tmp_path / "one" / "src" / PACKAGE / "recordings.py"
    text = recordings.read_text(encoding="utf-8")
    recordings.write_text(text.replace("embedded=True", "embedded=False"), encoding="utf-8")
    capsys.readouterr()
    words = ["plugins", "test", str(tmp_path / "one"), "--check", "recordings"]
    assert main(words, []) == 0
    assert "SKIPPED dataset:scaffolded: no root was given" in capsys.readouterr().out
    (tmp_path / "data" / "scaffolded").mkdir(parents=True)
    words = ["plugins", "test", str(tmp_path / "one"), "--check", "files", "--data-root", str(tmp_path / "data")]
    assert main(words, []) == 1
    assert "expected files, unless embedded; found 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "has no pyproject.toml"),
        ("[project", "pyproject.toml cannot be read: "),
        ("[project]\nname = 'x'\n", "names no entry point of the group 'clocs'. Add [project.entry-points.clocs]"),
        (
            "[project.entry-points.clocs]\nx = 'not_there'\n",
            "names the module 'not_there', but neither it nor src/ contains not_there",
        ),
        ("[project.entry-points.clocs]\nx = 'tests'\n", "Plugin 'x' ("),
    ],
)
def test_a_folder_without_a_plugin_is_refused_with_what_is_missing(
    text: str | None, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests.py").write_text("raise ImportError('boom')", encoding="utf-8")
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert main(["plugins", "test", str(tmp_path)], []) == 2
    err = capsys.readouterr().err
    assert err.startswith("Error: ")
    assert problem in err
    sys.modules.pop("tests", None)


def test_the_module_of_the_folder_is_tested_not_another_one_of_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An older version that is installed has been imported by the command line before the folder is looked at."""
    new(tmp_path / "old", "--kind", "perturbation")
    assert len(open_project(tmp_path / "old", []).offers()) == 1
    new_folder = tmp_path / "new"
    write_plugin(new_folder, render_plugin(name_plugin(NAME), ("loss", "metric")))
    assert [one.kind for one in open_project(new_folder, []).offers()] == ["loss", "metric"]


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
    assert {"name": "scaffolded", "distribution": NAME, "version": "0.1.0"} in listed["plugins"]
    told = _run(python, "-m", "clocs_core", "plugins", "test", cwd=folder)
    assert ", 0 failed, 0 skipped." in told
    assert " passed" in _run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)
    small = ("-o", "resamples=10", "--device", "cpu", "--data-root", "data")
    for method, out in (("scaffolded", "run"), ("scaffolded-predict", "predicted")):
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
