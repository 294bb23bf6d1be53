"""Photograph pages of reports: the top of one of `demo`, and what is shown of each class on real recordings.

They become report.png, report-ptbxl.png and report-cardiology.png. The last two need PTB-XL and Cardiology in the data
root (CLOCS_DATA): without the recordings the script says so, and leaves these pictures as they are. It needs
`pip install playwright` and a Chromium. Run from anywhere where `clocs` is installed:
python docs/pictures/make_reports.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from clocs_core.settings.places import data_root

HERE = Path(__file__).parent
DESK, PHONE = ViewportSize(width=1100, height=1400), ViewportSize(width=390, height=844)


def top(page: Page) -> bytes:
    """Take what is seen when the page is opened."""
    return page.screenshot()


def all_classes(page: Page) -> bytes:
    """Take the whole section about classes."""
    return page.locator("#classes").screenshot()


def first_classes(page: Page) -> bytes:
    """Take as much of the section about classes as is seen at once."""
    page.locator("#classes").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('classes').scrollIntoView()")
    return page.screenshot()


@attrs.frozen
class Photograph:
    """A picture of a page: its file, the run that makes the page, what is taken of it, on which screen."""

    file: str
    run: str
    take: Callable[[Page], bytes]
    screen: ViewportSize = DESK
    dark: bool = False
    reads: str = ""  # the data set that has to be in the data root


PHOTOGRAPHS = (
    Photograph("report.png", "--method cmsc --dataset demo", top),
    Photograph(
        "report-ptbxl.png", "--method cmsc --dataset ptbxl --task superclass --epochs 10", all_classes, reads="ptbxl"
    ),
    Photograph(
        "report-cardiology.png",
        "--method cmsc --dataset cardiology --epochs 20",
        first_classes,
        PHONE,
        dark=True,
        reads="cardiology",
    ),
)


def write_page(run: str, folder: Path) -> Path:
    """Pre-train and evaluate; return the page."""
    command = [sys.executable, "-m", "clocs_core", "run", *run.split(), "--out", str(folder / "run")]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return folder / "run" / "report.html"


def photograph(one: Photograph, page: Path, browser: Browser) -> None:
    """Open the page, and keep the picture with 64 colours."""
    opened = browser.new_page(viewport=one.screen, color_scheme="dark" if one.dark else "light")
    opened.goto(page.as_uri())
    few = Image.open(BytesIO(one.take(opened))).convert("RGB").quantize(64)
    few.save(HERE / one.file, optimize=True)


def main() -> None:
    """Make the pictures whose recordings are here."""
    program = os.environ.get("CLOCS_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as driver, driver.chromium.launch(executable_path=program, args=["--no-sandbox"]) as browser:
        for one in PHOTOGRAPHS:
            if one.reads and not (data_root(None) / one.reads).exists():
                sys.stderr.write(f"{one.file} stays: there is no {one.reads} in {data_root(None)} (set CLOCS_DATA)\n")
                continue
            with TemporaryDirectory() as folder:
                photograph(one, write_page(one.run, Path(folder)), browser)


if __name__ == "__main__":
    main()
