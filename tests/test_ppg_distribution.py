"""The distribution for pulse waves as its users meet it: two wheels in an environment that knows no checkout."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("openpyxl") is None, reason="the plugin reads a workbook by openpyxl"),
]
ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "plugins" / "clocs-plugin-ppg"
OFFLINE = ("--no-index", "--no-deps", "--quiet", "--disable-pip-version-check")


def variables() -> dict[str, str]:
    """The environment without a path to a checkout."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return kept | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def run(*command: str | Path, cwd: Path, fails: bool = False) -> str:
    """What a command prints; of one that is to fail, what it complains of."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False, env=variables())
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheels of clocs and of the plugin, each by its own build system; nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, PLUGIN):
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source, cwd=folder)
    return sorted(folder.glob("*.whl"))


def installed(home: Path, wheels: list[Path]) -> Path:
    """The interpreter of a new environment: the wheels, and what they need by links, but no clocs of this one."""
    venv.create(home / "venv", with_pip=False)
    python = home / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    (home / "shared").mkdir()
    for place in (Path(path) for path in sys.path if path.endswith("site-packages")):
        for item in place.iterdir():
            link, ours = home / "shared" / item.name, item.name.startswith(("clocs", "_clocs", "__editable__"))
            if not ours and item.suffix != ".pth" and not link.exists():
                link.symlink_to(item)
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    (own / "shared.pth").write_text(f"{home / 'shared'}\n", encoding="utf-8")
    run(sys.executable, "-m", "pip", "--python", python, "install", *OFFLINE, *wheels, cwd=home)
    return python


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
    assert {"name": "ppg", "distribution": "clocs-plugin-ppg", "version": "0.1.0"} in found["plugins"]
    mine = {(one["kind"], one["name"]) for one in found["offers"] if one["plugin"] == "ppg"}
    assert mine >= {("dataset", "ppg-bp"), ("dataset", "bidmc"), ("method", "cross-modal"), ("views", "modalities")}
    assert len([one for one in found["offers"] if one["plugin"] != "ppg"]) > 20


TYPE = """
import json, sys
from clocs_core.cli import main
for words in json.loads(sys.argv[1]):
    code = main(words)
    print("TYPED", code, *words, file=sys.stderr, flush=True)
"""


def test_every_command_of_its_readme_can_be_typed(python: Path, tmp_path: Path) -> None:
    """Flags, options and names are resolved before anything is read: a run without its files ends after that."""
    text = (PLUGIN / "README.md").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [shlex.split(line, comments=True)[1:] for line in re.findall(r"^\$ (clocs .*)$", text, re.MULTILINE)]
    runs = [words for words in lines if words[0] == "run"]
    others = [[*words, "--help"] for words in lines if words[0] != "run"]  # an unknown flag is refused all the same
    assert len(runs) >= 8
    assert len(others) >= 8
    told = subprocess.run(
        [python, "-c", TYPE, json.dumps([*runs, *others])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=variables() | {"CLOCS_DATA": str(tmp_path)},
        check=True,
    ).stderr
    ends = re.findall(r"^TYPED (\d+) (.*)$", told, re.MULTILINE)
    assert [code for code, _ in ends] == ["2"] * len(runs) + ["0"] * len(others), told
    assert len(re.findall(r"^Error: Data set '\S+' is not at ", told, re.MULTILINE)) == len(runs), told


def test_its_readme_counts_its_lines() -> None:
    count = sum(file.read_text(encoding="utf-8").count("\n") for file in (PLUGIN / "src").rglob("*.py"))
    assert f"It is {count} lines of Python" in (PLUGIN / "README.md").read_text(encoding="utf-8")


def test_a_run_on_the_published_recordings_ends_with_an_interval_of_its_gain(trained: Path) -> None:
    """The sentence that a reader takes away: better than the untrained encoder, or not to be told from it."""
    report = json.loads((trained / "report.json").read_text(encoding="utf-8"))
    assert report["environment"]["plugin ppg"] == "clocs-plugin-ppg 0.1.0"
    assert sum(report["split"]["patients"].values()) == 219
    first = report["comparisons"][0]
    page, told = (path.read_text(encoding="utf-8") for path in (trained / "report.html", trained.parent / "told"))
    sentence = f"cmsc and random differ by {first['difference']:.3f} [{first['low']:.3f}, {first['high']:.3f}]"
    assert sentence in page
    assert sentence in " ".join(told.split())


def test_its_own_tests_pass_in_an_environment_of_its_users(python: Path, tmp_path: Path) -> None:
    """With the clocs of the wheel, and with the plugin installed beside its sources: nothing may depend on which."""
    words = ("-q", "-p", "no:cacheprovider", "--basetemp", tmp_path / "base")
    told = run(python, "-m", "pytest", *words, cwd=PLUGIN)
    assert " passed" in told
    assert "failed" not in told


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
    assert found["plugins"] == [one for one in both["plugins"] if one["name"] != "ppg"]
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
