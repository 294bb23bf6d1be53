"""The page of a grid: all that it shows, drawn from the results of a command that takes 50 ms in place of clocs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import run_all

from clocs_core.grids.commit import source_commit

HERE = Path(__file__).parent


def test_the_page_has_tables_figures_controls_splits_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One HTML file that needs nothing else, and the same in Markdown with figures in both formats beside it."""
    monkeypatch.setenv("FAKE_PREDICTIONS", "1")
    with_numpy = f"{sys.executable} {HERE / 'fake_grid_command.py'}"
    out = tmp_path / "out"
    grid = ("--methods", "cmsc,simclr", "--datasets", "demo", "--seeds", "1", "--splits", "2", "--jobs", "1")
    more = ("--label-fractions", "0.5,1", "--resamples", "20", "--out", str(out), "--command", with_numpy)
    assert run_all.main([*grid, *more]) == 0
    html, text = (out / "grid.html").read_text(), (out / "grid.md").read_text()
    for words in ("above random", "Paired differences on the same patients", "Split certificates", "class prior"):
        assert words in html
    assert f"Source: {source_commit(HERE)}\n" in text
    for words in ("sd over splits", "### Differences on the same patients", "18 / 6 / 6", "python 3", "a is above"):
        assert words in text
    assert "<script" not in html
    assert 'src="data:image/png;base64,' in html
    assert (out / "figures" / "grid.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "figures" / "grid.svg").read_text().startswith("<?xml")
    for words in ("## Pre-trainings", "| demo | 4 | 128 | cmsc | 2 / 3, 2 / 3 | "):
        assert words in text
