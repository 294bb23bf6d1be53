"""The pages that clocs writes, in a real browser: whole, offline, readable on a phone and in the dark."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest
from clinical_records import clinical
from page_looks import looks, visit
from PIL import Image

from clocs_core import Comparison, DropReport, Picture, Score
from clocs_core.artifacts.metrics import EpochRow
from clocs_core.artifacts.reports import Report, SplitSummary
from clocs_core.cli import main
from clocs_core.report.blocks import Section, Table
from clocs_core.report.clinical import clinical_sections
from clocs_core.report.neighbours import render_neighbours
from clocs_core.report.page import render
from clocs_core.report.plain_page import render_sections

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

SMALL = ["--epochs", "2", "--batch-size", "16", "-o", "patients=12", "-o", "resamples=10", "--device", "cpu"]


def hard_report() -> str:
    """A report with everything that is too long or too wide for a small screen."""
    name = "a_name_without_any_place_to_break_it_" * 4
    score = Score("linear", name, "d", 0.25, "auroc", "record", 0.8, 0.7, 0.9)
    control = attrs.evolve(score, init="random", value=0.6, low=0.5, high=0.7)
    difference = Comparison(name, "random", "linear", "d", 0.25, "auroc", "record", 0.2, 0.1, 0.3)
    parts = ({"train": 6000, "validation": 20, "test": 2},) * 3
    report = Report(
        method=name,
        dataset="d",
        task=name,
        seed=7,
        epochs_run=1234,
        best_epoch=2,
        settings={"data": {"root": f"/{name}/{name}", "channels": [name] * 9}},
        stopped="early stopping",
        split=SplitSummary("c0ffee" * 10, "60/20/20", 7, *parts, 0, 0),
        environment={"device": name, "python": "3.11"},
        scores=(score, control),
        comparisons=(difference, attrs.evolve(difference, difference=-0.2, low=-0.3, high=-0.1)),
        notes=(name, "A note."),
        drops=DropReport({name: 12}, {name: (name,) * 9}),
        form=name,
        seconds={"prepare": 8.21},
    )
    row = EpochRow(
        epoch=1,
        train_loss=1.5,
        validation_loss=math.nan,
        effective_rank=7.0,
        same_patient=0.9,
        other_patient=0.2,
        margin=0.7,
        loss_over_log_batch=0.4,
        improved=True,
        seconds=1.0,
        instances=1000,
    )
    pictures = [Picture(one, name, name, wide_picture()) for one in ("loss", "traces", "more")]
    return render(report, [row] * 3, pictures, clinical=hard_classes(name))


def hard_classes(name: str) -> list[Section]:
    """The results of 24 classes, and a recording on paper, with names that are too long."""
    names = tuple(f"{name}{number}" for number in range(24))
    paper = Picture("worst-1", name, name, wide_picture())
    return clinical_sections(clinical(names), [Picture("class-curves", name, name, wide_picture())], [paper])


def wide_picture() -> bytes:
    held = BytesIO()
    Image.new("RGB", (2400, 300), "white").save(held, "png")
    return held.getvalue()


def test_a_report_of_long_names_and_wide_pictures_is_readable_everywhere(chromium: Browser, tmp_path: Path) -> None:
    """It is read on phones and mailed to people without a network; every number on it must be reachable."""
    (tmp_path / "report.html").write_text(hard_report(), encoding="utf-8")
    url = (tmp_path / "report.html").as_uri()
    assert looks(chromium, url) == {}
    with visit(chromium, url) as seen:
        assert [one for one in seen.requests if not one.startswith("data:")] == [url]


def test_a_page_of_neighbours_is_readable_everywhere(chromium: Browser, tmp_path: Path) -> None:
    """Traces are wide and tables long; neither may push the other off a small screen."""
    name, picture = "a_recording_" * 12, Picture("traces", "Traces", "What they show.", wide_picture())
    headings = ("rank", "distance", "record", "patient", "label", "begins at")
    written = render_neighbours(name, name, headings, [[name] * len(headings)] * 5, picture)
    (tmp_path / "page.html").write_text(written, encoding="utf-8")
    assert looks(chromium, (tmp_path / "page.html").as_uri()) == {}


def test_pages_of_sections_are_readable_everywhere(chromium: Browser, tmp_path: Path) -> None:
    """Comparisons and evaluations: long names, wide tables, settings on one line."""
    name = "a_name_without_any_place_to_break_it_" * 4
    table = Table(title=name, headings=(name,) * 9, rows=[(name,) * 9] * 3, classes={(0, 4): "below-text"})
    section = Section(name="a", title=name, sentences=[name], notes=[name], tables=[table], text=name, outcome="below")
    written = render_sections(name, name, {name: name}, [section])
    (tmp_path / "page.html").write_text(written, encoding="utf-8")
    assert looks(chromium, (tmp_path / "page.html").as_uri()) == {}


def test_pictures_are_dark_in_the_dark(chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(hard_report(), encoding="utf-8")
    page = chromium.new_page(color_scheme="dark")
    page.goto((tmp_path / "report.html").as_uri())
    shot = Image.open(BytesIO(page.locator("img").first.screenshot())).convert("L")
    page.close()
    assert sum(shot.histogram()[:64]) > 0.9 * shot.width * shot.height  # white paper is dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_class_is_read_on_a_phone_value_first(chromium: Browser, tmp_path: Path, scheme: str) -> None:
    """Class and AUROC are on a small screen without scrolling, and every cell of the matrix can be scrolled to."""
    classes, worst = clinical_sections(clinical(("AFIB", "GSVT", "SB", "SR")))
    (tmp_path / "page.html").write_text(render_sections("a", "b", {}, [classes, worst]), encoding="utf-8")
    page = chromium.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto((tmp_path / "page.html").as_uri())
    row = page.get_by_role("region", name="Each class").locator("tbody tr").first.locator("td")
    assert row.all_inner_texts()[:2] == ["AFIB", "0.800 [0.700, 0.900]"]
    box = row.nth(1).bounding_box()
    matrix = page.get_by_role("region", name="Confusion matrix")
    cell = matrix.locator("tbody tr").nth(3).locator("td").nth(4)
    cell.scroll_into_view_if_needed()
    seen = cell.bounding_box()
    shades = {cell.evaluate("one => getComputedStyle(one).backgroundColor") for cell in matrix.locator("td").all()}
    page.close()
    assert box is not None
    assert box["x"] + box["width"] <= 390
    assert seen is not None
    assert seen["x"] >= 0
    assert seen["x"] + seen["width"] <= 390
    assert len(shades) == 3  # names, rare and frequent cells
    assert looks(chromium, (tmp_path / "page.html").as_uri()) == {}


def test_what_a_run_and_a_search_leave_is_readable_everywhere(chromium: Browser, tmp_path: Path) -> None:
    """Real pictures and real numbers: the pages that a newcomer sees first."""
    data = ["--data-root", str(tmp_path / "data")]
    run = ["run", "--plugin", "cmsc", "--dataset", "demo", "--without", "tensorboard", *SMALL, *data]
    assert main([*run, "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    report = (tmp_path / "run" / "report.html").as_uri()
    assert looks(chromium, report) == {}
    with visit(chromium, report) as seen:
        assert seen.page.locator("img").count() >= 5
        assert seen.page.locator("#classes td").count() > 20
        assert seen.page.locator("#worst img").count() == 3
    target = tmp_path / "neighbours.html"
    search = ["similar", str(tmp_path / "run"), "--record", "patient-00003-visit-1", *data]
    assert main([*search, "--out", str(target)]) == 0
    assert looks(chromium, target.as_uri()) == {}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<img src="https://example.invalid/a.png" alt="a">', "requests at 1280 px"),
        ("<script>console.error('no')</script>", "console at 390 px"),
        ('<img src="data:image/png;base64,AAAA" alt="torn">', "unseen_pictures at 390 px, light"),
        ('<div style="width: 800px">wide</div>', "overflow at 390 px, dark"),
        (
            '<div style="overflow: hidden"><table style="width: 800px"><td>wide</table></div>',
            "cut_tables at 390 px, dark",
        ),
        ('<p style="color: #999">faint</p>', "faint_texts at 1280 px, light"),
        ('<p style="color: #222">night</p>', "faint_texts at 390 px, dark"),
    ],
)
def test_a_look_finds_what_is_wrong(chromium: Browser, tmp_path: Path, body: str, fault: str) -> None:
    """Looks that find nothing anywhere would praise every page."""
    dark = "@media (prefers-color-scheme: dark) { body { background: #111; color: #eee; } }"
    head = f'<meta name="viewport" content="width=device-width"><style>body {{ margin: 0; }} {dark}</style>'
    (tmp_path / "page.html").write_text(f"<!doctype html><title>t</title>{head}{body}", encoding="utf-8")
    assert fault in looks(chromium, (tmp_path / "page.html").as_uri())
