"""The files of a new plugin."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from clocs_core.scaffold.naming import KINDS, LONGEST, OFFERS, name_plugin
from clocs_core.scaffold.rendering import BY_KIND, render_plugin, write_plugin


def test_every_kind_of_offer_has_an_example(tmp_path: Path) -> None:
    """A kind that is added to the hooks must be added here."""
    from clocs_core.plugins.catalogue import build_catalogue
    from clocs_core.plugins.host import load_plugins

    catalogue, _ = build_catalogue(load_plugins([]))
    kinds = [shelf.kind.kind for shelf in catalogue.shelves()]
    kinds.remove("listener")  # its example uses the hooks of events, without options
    assert kinds == list(OFFERS)
    assert list(BY_KIND) == list(KINDS)


def test_a_folder_that_cannot_be_finished_does_not_appear(tmp_path: Path) -> None:
    """Half a plugin would be refused as an existing folder the next time."""
    with pytest.raises(FileExistsError):
        write_plugin(tmp_path / "half", {"a": "text", "b/c": "text", "a/d": "a file is no folder"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("distribution", ["x", "e" * LONGEST])
def test_what_is_written_is_short_of_the_line_and_says_everything(distribution: str) -> None:
    """However long the name is; and no word of a template is left."""
    for path, text in render_plugin(name_plugin(distribution), KINDS).items():
        assert path.endswith(".md") or all(len(line) <= 120 for line in text.splitlines()), path
        assert "{{" not in text, path
        assert "{%" not in text, path
        assert text == "" or (text.endswith("\n") and not text.endswith("\n\n")), path
        if path.endswith(".py"):
            assert ast.get_docstring(ast.parse(text)), path
    project = tomllib.loads(render_plugin(name_plugin(distribution), KINDS)["pyproject.toml"])["project"]
    assert project["entry-points"]["clocs"] == {distribution: distribution}
