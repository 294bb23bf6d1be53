"""The offers of this distribution pass the checks of every plugin, and import only the public API of clocs."""

from __future__ import annotations

import ast
import importlib.metadata
from pathlib import Path

import pytest
from clocs_core.testing import checks_of_project

import clocs_plugin_ppg

PROJECT = Path(__file__).parents[1]
CHECKS = [check for check in checks_of_project(PROJECT) if not str(check).startswith("dataset:")]
SOURCES = sorted([*Path(clocs_plugin_ppg.__file__).parent.rglob("*.py"), *Path(__file__).parent.glob("*.py")])


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_the_offers_keep_their_promises(check):
    check.run()


@pytest.mark.parametrize("name", ["ppg-bp", "bidmc"])
def test_the_data_sets_keep_their_promises(name: str, made_ppg_bp: Path, made_bidmc: Path):
    """Use synthetic files: the published ones are not available everywhere."""
    # Check the project's own offers: if its wheel is installed, the import above may be another copy.
    every = checks_of_project(PROJECT, {"ppg-bp": made_ppg_bp, "bidmc": made_bidmc})
    checks = [check for check in every if str(check).startswith(f"dataset:{name}:")]
    assert len(checks) > 15
    for check in checks:
        check.run()


def test_the_plugin_is_found_by_its_entry_point_and_everything_is_checked():
    """A plugin that fails to load offers nothing, so none of its checks would run."""
    (point,) = [one for one in importlib.metadata.entry_points(group="clocs") if one.name == "ppg"]
    assert point.value == "clocs_plugin_ppg"
    for kind in ("plugin:", "views:modalities", "perturbation:ppg-motion", "method:cross-modal"):
        assert any(str(check).startswith(kind) for check in CHECKS), kind


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_of_clocs_only_the_public_api_is_imported(path: Path):
    """Other modules may change without notice, and another plugin may not be installed."""
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module)
    of_clocs = {name for name in imported if name.split(".")[0] in ("clocs_core", "clocs_plugins")}
    assert of_clocs <= {"clocs_core", "clocs_core.testing"}
