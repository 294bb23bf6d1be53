"""The wheel has all that an installation needs, and runs without the checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)], check=True)
    (made,) = folder.glob("clocs-*.whl")
    return made


def test_the_wheel_holds_both_packages_their_types_the_page_and_nothing_else(wheel):
    """An editable installation hides a file that was left out of the wheel."""
    names = set(zipfile.ZipFile(wheel).namelist())
    for needed in ("clocs_core/report/page.html.jinja", "clocs_core/py.typed", "clocs_plugins/py.typed"):
        assert needed in names
    in_tree = {
        path.relative_to(base).as_posix()
        for base in (ROOT, ROOT / "plugins")
        for package in ("clocs_core", "clocs_plugins")
        for path in (base / package).rglob("*.py")
    }
    assert {name for name in names if name.endswith(".py")} == in_tree
    assert {name.split("/")[0].split("-")[0] for name in names} == {"clocs_core", "clocs_plugins", "clocs"}


def test_what_the_wheel_installs_runs_from_another_folder(wheel, tmp_path):
    target = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(target)
    program = "import sys, clocs_core.cli as cli; print(cli.__file__); sys.exit(cli.main(sys.argv[1:]))"
    small = ("-o", "patients=12", "--epochs", "1", "-o", "resamples=20", "--data-root", "data", "--out", "run")
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "--plugin", "cmsc", "--dataset", "demo", *small],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(target))
    assert json.loads((tmp_path / "run" / "report.json").read_text())["scores"]
    assert "<html" in (tmp_path / "run" / "report.html").read_text()
