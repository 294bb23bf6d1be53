"""`clocs plugins test` tells good plugins from broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from scaffolded import PACKAGE, new

from clocs_core.cli import main

pytestmark = pytest.mark.usefixtures("forgotten")


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
