"""Photograph what a report shows of each class, on real recordings, into report-ptbxl.png and report-cardiology.png.

Needs PTB-XL and Cardiology in the data root (CLOCS_DATA), `pip install playwright` and a Chromium. Without the
recordings it says so, and leaves the pictures as they are. Run from anywhere where `clocs` is installed:
python docs/pictures/make_reports.py
"""

import os
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright

from clocs_core.settings.places import data_root

HERE = Path(__file__).parent
RUNS = {
    "ptbxl": "--method cmsc --dataset ptbxl --task superclass --epochs 10",
    "cardiology": "--method cmsc --dataset cardiology --epochs 20",
}
PHONE = ViewportSize(width=390, height=844)


def run(name: str, folder: Path) -> Path:
    """Pre-train and evaluate; return the page."""
    command = [sys.executable, "-m", "clocs_core", "run", *RUNS[name].split(), "--out", str(folder / name)]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return folder / name / "report.html"


def photograph(page: Path, name: str) -> None:
    """PTB-XL as on a desk by day, all of the section; Cardiology as on a phone at night, as much as is seen at once."""
    program = os.environ.get("CLOCS_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as driver, driver.chromium.launch(executable_path=program, args=["--no-sandbox"]) as browser:
        if name == "ptbxl":
            shown = browser.new_page(viewport={"width": 1100, "height": 900})
        else:
            shown = browser.new_page(viewport=PHONE, color_scheme="dark")
        shown.goto(page.as_uri())
        if name == "ptbxl":
            picture = shown.locator("#classes").screenshot()
        else:
            shown.locator("#classes").scroll_into_view_if_needed()
            shown.evaluate("document.getElementById('classes').scrollIntoView()")
            picture = shown.screenshot()
    few = Image.open(BytesIO(picture)).convert("RGB").quantize(64)
    few.save(HERE / f"report-{name}.png", optimize=True)


def main() -> None:
    """Make the pictures whose recordings are here."""
    for name in RUNS:
        if not (data_root(None) / name).exists():
            sys.stderr.write(f"report-{name}.png stays: there is no {name} in {data_root(None)} (set CLOCS_DATA)\n")
            continue
        with TemporaryDirectory() as folder:
            photograph(run(name, Path(folder)), name)


if __name__ == "__main__":
    main()
