"""The page about grids: its files are grids, and its commands fill them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import attrs
import pytest
from doc_commands import FENCE, ROOT, in_order, write_files

from clocs_core.cli import main
from clocs_core.grids import executor
from clocs_core.grids.grid_file import read_grid_file, settle_grid
from clocs_core.plugins.session import installed_session

PAGE = ROOT / "docs" / "grids.md"
FAKE = (sys.executable, "-S", "-E", str(ROOT / "tests" / "benchmarks" / "fake_grid_command.py"))


def test_every_file_of_the_page_is_a_grid(tmp_path: Path) -> None:
    """The second has named cells, and no name of its own."""
    texts = [block["body"] for block in FENCE.finditer(PAGE.read_text(encoding="utf-8")) if block["kind"] == "toml"]
    assert len(texts) == 2
    for text in texts:
        (tmp_path / "a.toml").write_text(text, encoding="utf-8")
        assert settle_grid(read_grid_file(tmp_path / "a.toml"), installed_session().catalogue).presets[0].conditions


@pytest.mark.slow
def test_the_commands_of_the_page_fill_its_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], no_figures: None
) -> None:
    """In their order, with a quick command in place of clocs, and this machine in place of a cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    local = executor.LOCAL
    quick = attrs.evolve(local, open=lambda options, place: local.open(options, attrs.evolve(place, command=FAKE)))
    monkeypatch.setattr(executor, "LOCAL", quick)
    write_files(PAGE, tmp_path)
    for line in in_order(PAGE):
        here = line.replace(" --engine ray --address auto --jobs 30 -e gpus=0.25", "")
        assert main(shlex.split(here)[1:]) == 0, line
    said = capsys.readouterr().out
    assert "12 cells: 12 done" in said
    assert "| simclr | 0." in said
    assert (tmp_path / "scores.csv").exists()
    assert (tmp_path / "runs/grids/linear-main/grid.html").exists()


@pytest.mark.slow
def test_the_grid_of_the_page_is_trained_in_miniature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By processes of this machine, on a few simulated patients."""
    monkeypatch.chdir(tmp_path)
    write_files(PAGE, tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text(file.read_text().replace("epochs = 20", "epochs = 1").replace("= 60", "= 12"), encoding="utf-8")
    fewer = ("--axis", "method=cmsc", "--axis", "embedding_dim=32", "--axis", "seed=0", "--resamples", "10")
    assert main(["grid", "run", "mine.toml", "--data-root", str(tmp_path), "--device", "cpu", *fewer]) == 0
    assert main(["grid", "status", "runs/grids/mine"]) == 0
    html = (tmp_path / "runs/grids/mine/grid.html").read_text()
    assert "report.html" in html
