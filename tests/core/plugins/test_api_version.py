"""Which versions of the plugin API are served."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest
from fake_plugins import FakePoint, fake_module, no_offers

from clocs_core import API_VERSION
from clocs_core.contracts import hookspecs
from clocs_core.plugins.host import Broken, load_plugins

MAJOR, MINOR = API_VERSION
ROOT = Path(__file__).parents[3]
STABILITY = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")


def declaring(version: object, **hooks: object) -> FakePoint:
    module = fake_module("versioned", clocs_datasets=no_offers, **hooks)  # type: ignore[arg-type]
    module.CLOCS_API = version  # type: ignore[attr-defined]
    return FakePoint("versioned", module, "clocs-versioned", "4.2")


def the_broken(version: object, **hooks: object) -> Broken:
    (broken,) = load_plugins([declaring(version, **hooks)]).broken
    return broken


@pytest.mark.parametrize("version", [f"{MAJOR}.{MINOR}", f"{MAJOR}.0", None])
def test_a_plugin_written_for_this_version_or_an_earlier_minor_one_is_loaded(version: object) -> None:
    """A minor version only adds, so what was written before it goes on working; saying nothing is allowed."""
    host = load_plugins([declaring(version)])
    assert ([one.name for one in host.plugins], host.broken) == (["versioned"], ())


@pytest.mark.parametrize(
    ("version", "upgrade"),
    [
        (f"{MAJOR}.{MINOR + 1}", "clocs"),
        (f"{MAJOR + 1}.0", "clocs"),
        (f"{MAJOR}.{MINOR + 10}", "clocs"),  # numbers, not texts: "1.10" is later than "1.9"
        (f"{MAJOR - 1}.99", "clocs-versioned"),
    ],
)
def test_a_plugin_of_another_version_is_set_aside_with_what_to_upgrade(version: str, upgrade: str) -> None:
    """Whoever installed it cannot tell from a failing hook which of the two is too old."""
    assert the_broken(version).problem == (
        f"Plugin 'versioned' (clocs-versioned 4.2) is not loaded because it was written for version {version} of the "
        f"hooks and this clocs has {MAJOR}.{MINOR}: upgrade {upgrade}, or silence this with `--without versioned`."
    )


@pytest.mark.parametrize("version", ["1", "1.0.0", "v1.0", "", 1.0, (1, 0), "1.x", "١.٠"])
def test_a_version_that_is_no_version_is_set_aside_with_one_that_is(version: object) -> None:
    """1.10 as a number is 1.1; so it is a text, of two numbers."""
    problem = the_broken(version).problem
    assert f"its CLOCS_API is {version!r} where a text such as '{MAJOR}.{MINOR}' is expected" in problem


@pytest.mark.parametrize("place", ["clocs_core", "clocs_core.testing", "hooks"])
def test_what_was_public_is_public_until_the_major_version_rises(place: str) -> None:
    """A name that goes breaks plugins that nobody here has seen. The page lists those of this version."""
    listed = re.search(rf"^`{re.escape(place)}`:\n\n```text\n(.+?)^```$", STABILITY, re.DOTALL | re.MULTILINE)
    assert listed is not None
    has = dir(hookspecs) if place == "hooks" else importlib.import_module(place).__all__
    assert set(listed[1].split()) <= set(has)
    assert f"names are public in version {MAJOR}.{MINOR} of the hooks" in STABILITY
    assert f"now `{API_VERSION}`" in STABILITY


def test_the_version_is_looked_at_before_the_hooks() -> None:
    """A hook that a later version brings would otherwise be called a misspelling."""
    problem = the_broken(f"{MAJOR}.{MINOR + 1}", clocs_diagnoses=no_offers).problem
    assert "no hook" not in problem
    assert "upgrade clocs," in problem


def test_our_own_plugin_sets_no_upper_bound_since_the_page_says_that_none_is_needed() -> None:
    assert "An upper bound is not needed" in STABILITY
    text = (ROOT / "plugins" / "clocs-plugin-ppg" / "pyproject.toml").read_text(encoding="utf-8")
    needed = tomllib.loads(text)["project"]["dependencies"]
    assert [one for one in needed if re.match(r"clocs\b", one)] == ["clocs>=0.1"]
