"""The plugins of a project's folder, installed or not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scaffolded import NAME, new

from clocs_core.cli import main
from clocs_core.scaffold.naming import name_plugin
from clocs_core.scaffold.rendering import render_plugin, write_plugin
from clocs_core.testing.project import open_project

pytestmark = pytest.mark.usefixtures("forgotten")


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
