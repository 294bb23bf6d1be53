"""`clocs plugins new` writes a plugin, or touches nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_offers import tiny
from fake_plugins import fake_point
from scaffolded import NAME, new

from clocs_core import API_VERSION
from clocs_core.cli import main
from clocs_core.scaffold.naming import KINDS, choose_kinds
from clocs_core.testing.project import open_project

pytestmark = pytest.mark.usefixtures("forgotten")


def test_a_name_that_is_taken_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two plugins with one name neither would be loaded."""
    points = [fake_point("eeg"), fake_point("other", clocs_datasets=lambda: [tiny()])]
    for name, taken in (("clocs-eeg", "plugin 'eeg'"), ("clocs-tiny", "dataset 'tiny'"), ("torch", "module 'torch'")):
        assert main(["plugins", "new", name, "--out", str(tmp_path / "x")], points) == 2
        assert capsys.readouterr().err.startswith(f"Error: A {taken} is ")
    assert list(tmp_path.iterdir()) == []


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
