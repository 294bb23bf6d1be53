"""The distribution for pulse waves as its users meet it: two wheels in an environment that knows no checkout."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from fresh_environment import OFFLINE, installed, link_packages, run, type_into_a_shell

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("openpyxl") is None, reason="the plugin reads a workbook by openpyxl"),
]
ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "plugins" / "clocs-plugin-ppg"
SHOWN = re.findall(r"^\$ (.*)$", (PLUGIN / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
COMMANDS = [line.partition("  #")[0].strip() for line in SHOWN]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheels of clocs and of the plugin, each by its own build system; nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, PLUGIN):
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source, cwd=folder)
    return sorted(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("home"), wheels)


@pytest.fixture(scope="module")
def trained(python: Path, test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short run on the published recordings."""
    if not (test_data / "ppg_bp").is_dir():
        pytest.skip("no real PPG-BP here: set CLOCS_TEST_DATA to a folder that has ppg_bp/")
    place = tmp_path_factory.mktemp("trained")
    words = ("--plugin", "cmsc", "--dataset", "ppg-bp", "--root", test_data / "ppg_bp", "--epochs", "3")
    few = ("--device", "cpu", "--workers", "1", "-o", "resamples=100", "--data-root", "data", "--out", "run")
    (place / "told").write_text(run(python, "-m", "clocs_core", "run", *words, *few, cwd=place), encoding="utf-8")
    return place / "run"


def listed(python: Path, cwd: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(python, "-m", "clocs_core", "plugins", "--json", cwd=cwd))
    return found


def test_what_is_installed_comes_from_the_wheels_and_is_listed(python: Path, tmp_path: Path) -> None:
    """An editable installation hides a file that was left out of a wheel."""
    where = "import clocs_core, clocs_plugin_ppg as ppg; print(clocs_core.__file__, ppg.__file__, sep='\\n')"
    for file in run(python, "-c", where, cwd=tmp_path).splitlines():
        assert Path(file).is_relative_to(python.parents[1])
    found = listed(python, tmp_path)
    (ppg,) = [one for one in found["plugins"] if one["name"] == "ppg"]
    assert (ppg["distribution"], ppg["version"]) == ("clocs-plugin-ppg", "0.1.0")
    mine = {(one["kind"], one["name"]) for one in found["offers"] if one["plugin"] == "ppg"}
    assert mine >= {("dataset", "ppg-bp"), ("dataset", "bidmc"), ("method", "cross-modal"), ("views", "modalities")}
    assert len([one for one in found["offers"] if one["plugin"] != "ppg"]) > 20


def test_its_readme_counts_its_lines() -> None:
    count = sum(file.read_text(encoding="utf-8").count("\n") for file in (PLUGIN / "src").rglob("*.py"))
    assert f"It is {count} lines of Python" in (PLUGIN / "README.md").read_text(encoding="utf-8")


def test_a_run_on_the_published_recordings_ends_with_an_interval_of_its_gain(trained: Path) -> None:
    """The sentence that a reader takes away: better than the untrained encoder, or not to be told from it."""
    report = json.loads((trained / "report.json").read_text(encoding="utf-8"))
    assert report["environment"]["plugin ppg"] == "clocs-plugin-ppg 0.1.0"
    assert sum(report["split"]["patients"].values()) == 219
    first = next(one for one in report["comparisons"] if one["level"] == "record")  # recordings have the labels
    page, told = (path.read_text(encoding="utf-8") for path in (trained / "report.html", trained.parent / "told"))
    sentence = f"cmsc and random differ by {first['difference']:.3f} [{first['low']:.3f}, {first['high']:.3f}]"
    assert sentence in page
    assert sentence in " ".join(told.split())


OWN_TESTS = ("CLOCS_TEST_DATA=FOLDER pytest", "pytest -m slow")
OF_USERS, OF_AUTHORS = "pip install ./plugins/clocs-plugin-ppg", "pip install -e '.[test]'"


def test_every_command_of_its_readme_is_run() -> None:
    """Those of clocs by its own tests, which the next test runs; the others here."""
    others = [line for line in COMMANDS if not line.startswith("clocs ")]
    assert sorted(others) == sorted([*OWN_TESTS, OF_USERS, OF_AUTHORS])


@pytest.mark.parametrize("command", OWN_TESTS)
def test_its_own_tests_pass_in_an_environment_of_its_users(
    command: str, python: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """With the clocs of the wheel, and with the plugin installed beside its sources: nothing may depend on which."""
    quiet = ("-q", "-p", "no:cacheprovider", "--basetemp", tmp_path / "base")
    words = command.partition("pytest")[2].split()
    told = run(python, "-m", "pytest", *words, *quiet, cwd=PLUGIN, also=real(request))
    assert " passed" in told
    assert "failed" not in told


def real(request: pytest.FixtureRequest) -> dict[str, str]:
    """Where real recordings are, as the plugin's tests are told of it; nothing where there are none."""
    try:
        return {"CLOCS_TEST_DATA": str(request.getfixturevalue("test_data"))}
    except pytest.skip.Exception:
        return {}


def test_it_is_installed_by_the_commands_of_its_readme(wheels: list[Path], tmp_path: Path) -> None:
    """From the checkout of clocs, and for work on it from its own folder, which leaves the sources where they are."""
    clocs = next(wheel for wheel in wheels if wheel.name.startswith("clocs-0"))
    where = "python -c 'import clocs_plugin_ppg as ppg; print(ppg.__file__)'"
    commands = [
        *("python -m venv .venv", ". .venv/bin/activate", f"pip install {shlex.quote(str(clocs))}"),
        *(f"cd {shlex.quote(str(ROOT))}", OF_USERS, "clocs plugins", where),
        *(f"cd {shlex.quote(str(PLUGIN))}", OF_AUTHORS, where),
    ]
    told = type_into_a_shell(commands, tmp_path, link_packages(tmp_path / "packages"), tmp_path / "data")
    assert "cross-modal" in told
    *_, first, last = [line for line in told.splitlines() if line.endswith("__init__.py")]
    assert Path(first).is_relative_to(tmp_path)
    assert Path(last).is_relative_to(PLUGIN / "src")


def test_without_it_clocs_is_whole_and_its_encoders_open(wheels: list[Path], trained: Path, tmp_path: Path) -> None:
    """Whoever gets the file of an encoder needs the plugin of its architecture, and that is not this one."""
    python = installed(tmp_path, wheels)
    both = listed(python, tmp_path)
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "uninstall",
        "--yes",
        *OFFLINE[2:],
        "clocs-plugin-ppg",
        cwd=tmp_path,
    )
    found = listed(python, tmp_path)
    names = [[one["name"] for one in listed["plugins"] if one["name"] != "ppg"] for listed in (found, both)]
    assert names[0] == names[1]
    assert found["offers"] == [one for one in both["offers"] if one["plugin"] != "ppg"]
    assert "Usage: clocs run" in run(python, "-m", "clocs_core", "run", "--dataset", "demo", "--help", cwd=tmp_path)
    opened = (
        "import sys, numpy, clocs_core as clocs; encoder = clocs.load(sys.argv[1]); "
        "wave = numpy.sin(numpy.arange(2100) / 150); "
        "print(encoder.about.dataset, encoder.embed(wave, sampling_rate=1000, channels=['PPG']).embedding.shape)"
    )
    assert run(python, "-c", opened, trained, cwd=tmp_path) == "ppg-bp (2, 1, 128)\n"
    refused = run(python, "-m", "clocs_core", "evaluate", trained, cwd=tmp_path, fails=True)
    assert refused.startswith("Error: No dataset 'ppg-bp'.")
    assert "Traceback" not in refused
