"""The commands of pages that install and change the shell, typed into one as the pages show them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from doc_commands import ROOT, block_with, smaller, write_files
from fresh_environment import link_packages, type_into_a_shell

TUTORIAL, WRITE = ROOT / "docs" / "tutorial.md", ROOT / "docs" / "write-a-plugin.md"
INSTALL = block_with(TUTORIAL, "python -m venv .venv")
SCAFFOLD = block_with(WRITE, "clocs plugins new clocs-plugin-eeg")
TEN_LINES = block_with(WRITE, "pip install ./wander")
BY_HAND = block_with(WRITE, "pip install .") + block_with(WRITE, "python make_ward_data.py")


def test_the_pages_have_these_commands():
    """A block that is rewritten must not drop out of the test below in silence."""
    assert INSTALL == ["python -m venv .venv", ". .venv/bin/activate", "pip install ."]
    assert SCAFFOLD[1:4] == ["cd clocs-plugin-eeg", "pip install '.[test]'", "clocs plugins test"]
    assert SCAFFOLD[4:] == ["clocs run --method eeg --dataset eeg"]
    assert TEN_LINES[1:] == ["clocs run --plugin cmsc --dataset demo -o perturbations=wander"]
    assert len(BY_HAND) == 4


def copy_checkout(folder: Path) -> Path:
    """What a wheel is built from, so that the environment of the page does not lie in the checkout."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("clocs_core", "plugins/clocs_plugins"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the pages are written for bash")
def test_a_reader_installs_clocs_and_makes_and_installs_plugins(tmp_path):
    """From nothing to a run of a new plugin and one of a plugin written by hand, under the names of the pages."""
    checkout, own = copy_checkout(tmp_path / "clocs"), tmp_path / "own"
    own.mkdir()
    write_files(WRITE, own)
    where = "python -c 'import clocs_core, sys; print(clocs_core.__file__, sys.prefix)'"
    commands = [
        *INSTALL,
        *("cd ..", where),
        *(short(line) for line in SCAFFOLD),
        "cd ../own",
        *(smaller(line) for line in TEN_LINES),
        *(short(line) for line in BY_HAND),
    ]
    told = type_into_a_shell(commands, checkout, link_packages(tmp_path / "packages"), tmp_path / "data")
    assert f"{checkout / '.venv'}/lib" in told  # not the clocs of this environment
    assert ", 0 failed, 0 skipped." in told
    assert (tmp_path / "clocs-plugin-eeg" / "runs").is_dir()
    assert "ward" in told
    assert len(list((own / "runs").glob("*/report.json"))) == 2


def short(line: str) -> str:
    """A run of the page with the options of a small one; the new plugin has its own number of patients."""
    return smaller(line).replace(" -o patients=12", "") if line.startswith("clocs run") else line
