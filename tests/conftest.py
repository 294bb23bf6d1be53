"""Find real recordings and a browser, and skip the tests that need them where they are missing."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from clocs_core.data.cohort import Cohort
    from clocs_core.data.prepared import Prepared

TEST_DATA = Path(os.environ.get("CLOCS_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
"""The folder of real recordings: CLOCS_TEST_DATA, or the one beside the checkout."""

# No time limits: the machine may be busy with other work. .ci/run sets CI and gets the same cases every time, so that a
# commit always gets the same verdict; everywhere else the cases are new every time.
settings.register_profile(
    "clocs",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("clocs")

# A shell without job control starts `make test &` with Ctrl-C ignored, and tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Commands that tests start keep byte code, as an installed package has it: each would compile 0.1 to 0.4 s otherwise.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True)
def _same_state_of_torch() -> None:
    """Give torch the same state for every test, so that one draws and rounds alone as it does after any other."""
    if torch := sys.modules.get("torch"):  # many tests do without it, and it takes seconds to import
        torch.default_generator.manual_seed(0)  # torch.manual_seed notes the stack for each kind of GPU: 2 ms
        # The first product in bf16 on a CPU without it switches this off for the whole process; then float32 rounds
        # otherwise.
        torch.backends.mkldnn.enabled = True


@pytest.fixture(scope="session")
def test_data() -> Path:
    """Return the folder of real recordings. Skips where it is absent."""
    if not TEST_DATA.is_dir():
        pytest.skip("no real recordings here: set CLOCS_TEST_DATA to a folder that has them")
    return TEST_DATA


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Return the prepared frames of six fake patients. Tests share them and change nothing."""
    from fake_frames import fake_prepared  # imports torch, which many tests do without

    return fake_prepared(tmp_path_factory.mktemp("prepared"))


@pytest.fixture(scope="session")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    """Return six fake patients, divided into parts, with their frames. Tests share them and change nothing."""
    from fake_frames import fake_cohort

    return fake_cohort(tmp_path_factory.mktemp("cohort"))


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what a test has imported from the folder of a new plugin."""
    from scaffolded import PACKAGE

    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER_FLAGS = (
    "--no-sandbox",  # containers have no user namespaces to build one from
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start the system's headless Chromium, one for the tests of a module. Skips where there is none.

    One for all modules is impossible: while Playwright runs, its event loop occupies the thread, and no test can
    start another.
    """
    driver = pytest.importorskip("playwright.sync_api", reason="browsers are driven by `pip install playwright`")
    named = os.environ.get("CLOCS_CHROMIUM")
    program = named or next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium here: install Debian's chromium, or set CLOCS_CHROMIUM to a browser of its family")
    with (
        driver.sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=BROWSER_FLAGS) as browser,
    ):
        yield browser


@pytest.fixture(scope="module")
def no_pictures() -> Iterator[None]:
    """Leave out the drawing of pictures in a module whose tests look at none; most of the time of a small run."""
    from no_pictures import without_pictures

    with without_pictures():
        yield


@pytest.fixture(autouse=True)
def _no_data_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep a test that forgets --data-root from reading or writing the user's data."""
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path_factory.getbasetemp() / "data-root"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need a GPU where there is none, with a reason."""
    if not any(item.get_closest_marker("cuda") for item in items):
        return
    import torch

    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("cuda"):
                item.add_marker(pytest.mark.skip(reason="torch finds no NVIDIA GPU"))


@pytest.fixture(scope="module")
def no_figures() -> Iterator[None]:
    """Leave out the drawing of figures, which takes most of the time of a small grid, where no test looks at them."""
    from clocs_core.grids import drawing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "to_png", lambda figure: b"\x89PNG")
        patch.setattr(drawing, "to_svg", lambda figure, name: b"<?xml")
        yield
