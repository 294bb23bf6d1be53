"""What this distribution offers keeps the promises that clocs asks of every plugin, and imports its public API only."""

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
    """On files made in the formats: the published ones are not everywhere."""
    # As the project offers them: where a wheel of it is installed, what was imported above is another copy.
    every = checks_of_project(PROJECT, {"ppg-bp": made_ppg_bp, "bidmc": made_bidmc})
    checks = [check for check in every if str(check).startswith(f"dataset:{name}:")]
    assert len(checks) > 15
    for check in checks:
        check.run()


def test_the_plugin_is_found_by_its_entry_point_and_everything_is_checked():
    """A plugin that is set aside offers nothing, so that none of its checks would be made."""
    (point,) = [one for one in importlib.metadata.entry_points(group="clocs") if one.name == "ppg"]
    assert point.value == "clocs_plugin_ppg"
    for kind in ("plugin:", "views:modalities", "perturbation:ppg-motion", "method:cross-modal"):
        assert any(str(check).startswith(kind) for check in CHECKS), kind


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_of_clocs_only_the_public_api_is_imported(path: Path):
    """Whatever else it has may change without notice, and another plugin may not be there."""
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module)
    of_clocs = {name for name in imported if name.split(".")[0] in ("clocs_core", "clocs_plugins")}
    assert of_clocs <= {"clocs_core", "clocs_core.testing"}
