"""The two gates: every table in miniature, and every built-in method against its recorded score."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from pathlib import Path

import pytest
import run_all
from grid import reference, story
from grid.flags import build_parser, read_request

from clocs_core.grids.carry_out import make_pages
from clocs_core.grids.definition import load_grid
from clocs_core.grids.export import write_export
from clocs_core.grids.measure import Inputs
from clocs_core.grids.results import Results
from clocs_core.plugins.session import installed_session
from clocs_plugins.paper_tables.tables import paper_grids

HERE = Path(__file__).parent
FAKE = f"{sys.executable} -S -E {HERE / 'fake_grid_command.py'}"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, no_figures: None) -> str:
    """A reference of what the fake command reaches, made once."""
    place = tmp_path_factory.mktemp("reference")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "REFERENCE", place / "reference.json")
        assert run_all.main(["--record-reference", "--out", str(place / "out"), "--command", FAKE]) == 0
    return (place / "reference.json").read_text()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder for grids."""
    return tmp_path


@pytest.mark.slow
def test_every_table_of_the_miniature_is_made(place: Path) -> None:
    """With the fake command: what each figure draws, from perturbations to patient distances."""
    command = ["--smoke", "--out", str(place / "out"), "--command", FAKE, "--jobs", "4"]
    assert run_all.main(command) == 0
    drawn = {path.stem for path in (place / "out" / "figures").glob("*.svg")}
    assert drawn >= {"linear-main", "transfer-12-leads", "byol-tau-linear", "perturbations", "more-with-less"}
    assert drawn >= {"effect-of-dimension", "effect-of-labels", "patient-distances", "patient-distances-by-dimension"}
    assert drawn >= {"more-with-less-epochs", "patient-distances-histograms"}
    text = (place / "out" / "grid.md").read_text()
    assert "0.896 ± 0.005" in text
    assert "within patients" in text
    check_pages_of_exports(place, text)


def check_pages_of_exports(place: Path, whole: str) -> None:
    """Every table has a page that is made of exported files alone, with the rows of the page of the folders."""
    grid = load_grid(place / "out")
    inputs = Inputs(repeats=grid.repeats, results=Results(place / "out"), measure=grid.measure)
    write_export(grid, inputs, place / "files")
    counts = make_pages(grid, [place / "files"], installed_session().catalogue, place / "pages", print)
    assert all(one.made == one.asked > 0 for one in counts.values())
    assert set(counts) == {offer.name for offer in paper_grids()}
    for name in counts:
        page = (place / "pages" / f"{name}.md").read_text()
        assert {line for line in page.splitlines() if line.startswith("| ")} <= set(whole.splitlines())
        for link in re.findall(r"\]\(([^)]+)\)", page):
            assert (place / "pages" / link).exists(), link


def test_the_miniature_is_made_anew_every_time() -> None:
    """A folder of its own each time: one that is taken up again would pass without running anything."""

    def folder(second: int, *mode: str) -> Path:
        return read_request(build_parser("").parse_args([*mode]), datetime(2026, 1, 1, 0, 0, second)).out

    for mode in ("--smoke", "--check", "--record-reference"):
        assert folder(1, mode) != folder(2, mode)
    assert folder(1, "linear-main") == folder(2, "linear-main")


@pytest.fixture
def recorded(place: Path, first: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reference, in a file that a test may change."""
    path = place / "reference.json"
    path.write_text(first)
    monkeypatch.setattr(story, "REFERENCE", path)
    return path


def check(place: Path, name: str) -> int:
    return run_all.main(["--check", "--out", str(place / name), "--command", FAKE])


@pytest.mark.slow
def test_the_gate_holds_until_a_score_leaves_its_interval(
    place: Path, recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every built-in method is in it; one that learns otherwise than it did fails the check by name."""
    kept = json.loads(recorded.read_text())
    assert {"cmsc", "cmlc", "cmsmlc", "simclr", "byol", "mt-ssl", "supervised", "vicreg"} <= set(kept)
    assert check(place, "second") == 0
    assert capsys.readouterr().out.count(": holds") == len(kept)
    kept["byol"] |= {"low": 0.0, "high": 0.1}
    recorded.write_text(json.dumps(kept))
    assert check(place, "second") == 1  # the same scores
    assert re.search(r"byol: 0\.\d+, recorded .*: HAS LEFT ITS INTERVAL", capsys.readouterr().out)


@pytest.mark.slow
def test_a_method_that_no_longer_runs_fails_the_gate(
    place: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No score is not in the interval."""
    monkeypatch.setenv("FAKE_FAIL", "vicreg")
    assert check(place, "second") == 1
    assert "vicreg: no score" in capsys.readouterr().out


def test_the_gate_without_a_reference_says_how_to_make_one(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It must not pass because there is nothing to compare with."""
    monkeypatch.setattr(story, "REFERENCE", place / "none.json")
    assert check(place, "second") == 2
    assert "--record-reference" in capsys.readouterr().err


def test_the_committed_reference_covers_every_built_in_method() -> None:
    """A new method must be recorded, or the gate would not watch it."""
    from clocs_core.plugins.catalogue import build_catalogue
    from clocs_core.plugins.host import installed_entry_points, load_plugins

    catalogue, _ = build_catalogue(load_plugins(installed_entry_points()))
    built_in = {item.offer.name for item in catalogue.methods if item.plugin.distribution == "clocs"}
    kept = reference.read_reference(reference.REFERENCE)
    assert set(kept) == built_in
    assert all(one["low"] <= one["value"] <= one["high"] for one in kept.values())
