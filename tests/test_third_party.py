"""Somebody else's distribution: built as a wheel, installed apart from us, found through its entry point alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "0.3"
dependencies = ["clocs"]

[project.entry-points.clocs]
{entry_point} = "{package}"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""

# A complete plugin: two data sets, and a method of its own loss with views and an encoder that others offer.
BREATH = '''
"""Breathing belts: slow waves of two depths."""

from pathlib import Path

import attrs
from clocs_core import Dataset, Defaults, Entry, Framing, Listing, Loss, Method, Record, Task, hookimpl, option

DEPTH = Task("depth", classes=("deep", "shallow"))


@attrs.frozen
class BeltOptions:
    sleepers: int = option(10, "people who sleep")


@attrs.frozen
class PullOptions:
    strength: float = option(1.0, "of the pull", check=(lambda x: x > 0, "be positive"))


def scan(root, task, options):
    return Listing([Entry(f"night-{n}", f"sleeper-{n}", n % 2) for n in range(options.sleepers)])


def scan_bare(root, task, options):
    return Listing([Entry(f"night-{n}", f"sleeper-{n}") for n in range(options.sleepers)])


def load(entry, options):
    import numpy as np

    number = int(entry.record.split("-")[1])
    wave = np.sin(np.arange(1200) / (4 + number % 2 * 9)) + np.random.default_rng(number).normal(0, 0.2, 1200)
    return Record(entry.patient, entry.record, ("belt",), "a.u.", 25.0, wave[None], entry.label)


def framing(segments):
    return Framing(frame_samples=400)


def build_pull(options):
    from clocs_plugin_breath.pull import pull

    return lambda z, patient: options.strength * pull(z, patient)


def belts(name, summary, scan):
    return Dataset(
        name=name, summary=summary, modality="breath", tasks=(DEPTH,), channels=("belt",), scan=scan, load=load,
        framing=framing, options=BeltOptions, embedded=True,
        defaults=Defaults(batch_size=8, learning_rate=1e-3, epochs=2),
    )


@hookimpl
def clocs_datasets():
    return [belts("belts", "breathing belts", scan), belts("belts-bare", "the same without labels", scan_bare)]


@hookimpl
def clocs_losses():
    return [Loss(name="pull", summary="positives attract, all others repel", options=PullOptions, build=build_pull)]


@hookimpl
def clocs_methods():
    return [Method(name="breathe", summary="segments of one night", views="segments", encoder="cnn", loss="pull")]
'''

PULL = '''
"""The loss."""

import torch
from torch.nn.functional import cross_entropy, normalize


def pull(z, patient):
    a, b = normalize(z[0], dim=-1), normalize(z[1], dim=-1)
    return cross_entropy(a @ b.T / 0.2, torch.arange(len(a), device=z.device))
'''

DATASET = """
from clocs_core import Dataset, Listing, Task, hookimpl


def never(*arguments):
    raise AssertionError("nobody asked for this")


@hookimpl
def {hook}():
    return [Dataset(name="{name}", summary="of somebody else", modality="x", tasks=(Task("t", ("a", "b")),),
                    channels=("x",), scan=never, load=never)]
"""


def written(folder: Path, entry_point: str, sources: dict[str, str]) -> Path:
    """The source tree of a distribution with one package."""
    package = f"clocs_plugin_{folder.name}"
    (folder / package).mkdir(parents=True)
    text = PROJECT.format(distribution=f"clocs-{folder.name}", entry_point=entry_point, package=package)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    for name, source in sources.items():
        (folder / package / name).write_text(source, encoding="utf-8")
    return folder


def python(*arguments: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env=os.environ | variables
    )


def clocs(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own that finds what is installed in `site`, in a folder beside it."""
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return python("-m", "clocs_core", *arguments, cwd=site.parent, PYTHONPATH=path, CLOCS_DATA="data")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The breathing belts, built by their own build system and installed by pip; nothing is downloaded."""
    base = tmp_path_factory.mktemp("third")
    source = written(base / "breath", "breath", {"__init__.py": BREATH, "pull.py": PULL})
    offline = ("--no-deps", "--no-index", "--disable-pip-version-check", "--quiet")
    built = python("-m", "pip", "wheel", *offline, "--no-build-isolation", "-w", base, source, cwd=base)
    assert built.returncode == 0, built.stderr
    (wheel,) = base.glob("*.whl")
    made = python("-m", "pip", "install", *offline, "--target", base / "site", wheel, cwd=base)
    assert made.returncode == 0, made.stderr
    return base / "site"


def quickly_installed(base: Path, name: str, entry_point: str, source: str) -> Path:
    """Another distribution: its wheel built by hatchling and unpacked, which is all that an installer does to it."""
    tree = written(base / name, entry_point, {"__init__.py": source})
    built = python("-m", "hatchling", "build", "-t", "wheel", "-d", base / "dist", cwd=tree)
    assert built.returncode == 0, built.stderr
    (wheel,) = (base / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(base / "site")
    return base / "site"


def report_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return found


def test_a_strangers_plugin_is_listed_like_ours(installed: Path) -> None:
    done = clocs(installed, "plugins", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    (found,) = [one for one in document["plugins"] if one["name"] == "breath"]
    assert (found["distribution"], found["version"]) == ("clocs-breath", "0.3")
    assert 0 <= found["seconds"] < 10  # to import
    mine = {(one["kind"], one["name"]) for one in document["offers"] if one["plugin"] == "breath"}
    assert mine == {("dataset", "belts"), ("dataset", "belts-bare"), ("loss", "pull"), ("method", "breathe")}


@pytest.mark.slow
def test_a_strangers_method_runs_on_a_strangers_data(installed: Path) -> None:
    """Its loss, our views, encoder and metrics: they meet by name, without a change in core."""
    small = ["-o", "strength=0.5", "-o", "resamples=10", "--device", "cpu", "--out", "labelled"]
    done = clocs(installed, "run", "--plugin", "breathe", "--dataset", "belts", *small)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    report = report_of(installed.parent / "labelled")
    assert (report["method"], report["dataset"], report["task"], report["epochs_run"]) == (
        "breathe",
        "belts",
        "depth",
        2,
    )
    assert report["settings"]["loss"] == {"strength": 0.5}
    assert report["environment"]["plugin breath"] == "clocs-breath 0.3"
    assert {score["init"] for score in report["scores"]} >= {"breathe", "random"}


@pytest.mark.slow
def test_data_without_labels_end_with_a_report_that_says_why_there_is_no_score(installed: Path) -> None:
    """With a built-in method: most recordings in the world have no labels, and pre-training needs none."""
    small = ["--epochs", "1", "--device", "cpu", "--out", "bare"]
    done = clocs(installed, "run", "--plugin", "cmsc", "--dataset", "belts-bare", *small)
    assert done.returncode == 0, done.stderr
    report = report_of(installed.parent / "bare")
    assert (report["scores"], report["task"], report["epochs_run"]) == ([], None, 1)
    sentence = "There is no score: belts-bare has no labels."
    assert sentence in report["notes"]
    assert sentence in done.stdout
    assert sentence in (installed.parent / "bare" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "entry_point", "source", "asked", "problem"),
    [
        (
            "lost",
            "lost",
            "import a_package_that_nobody_has\n",
            "lost",
            "Plugin 'lost' (clocs-lost 0.3) could not be loaded: ModuleNotFoundError: No module named "
            "'a_package_that_nobody_has'. Repair or uninstall clocs-lost, or silence this with `--without lost`.",
        ),
        (
            "typo",
            "typo",
            DATASET.format(hook="clocs_datsets", name="typo"),
            "typo",
            "Plugin 'typo' (clocs-typo 0.3) could not be loaded: it implements 'clocs_datsets', which is no hook. "
            "Did you mean 'clocs_datasets'",
        ),
    ],
    ids=["import error", "misspelt hook"],
)
def test_a_broken_distribution_disturbs_only_those_who_ask_for_it(
    tmp_path: Path, name: str, entry_point: str, source: str, asked: str, problem: str
) -> None:
    """Other commands go on with a warning; whoever asks for its offer gets the reason in one line."""
    site = quickly_installed(tmp_path, name, entry_point, source)
    done = clocs(site, "plugins")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(f"Warning: {problem}")
    assert done.stderr.count("\n") == 1
    assert "cmsc" in done.stdout

    done = clocs(site, "run", "--plugin", "cmsc", "--dataset", asked)
    assert done.returncode == 2
    assert done.stdout == ""
    (error,) = [line for line in done.stderr.splitlines() if not line.startswith("Warning: ")]
    assert error.startswith("Error: ")
    assert problem in error
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "dist", "site"])

    done = clocs(site, "plugins", "--without", entry_point)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_data_set_with_the_name_of_a_built_in_one_stands_beside_it(tmp_path: Path) -> None:
    """The built-in one keeps its name, a warning says so, and the other is found by its distribution."""
    site = quickly_installed(tmp_path, "twin", "twin", DATASET.format(hook="clocs_datasets", name="demo"))
    done = clocs(site, "plugins", "--json")
    assert done.returncode == 0
    assert done.stderr.startswith("Warning: ")
    assert "'demo'" in done.stderr
    assert "clocs-twin" in done.stderr
    owners = {one["plugin"] for one in json.loads(done.stdout)["offers"] if one["name"] == "demo"}
    assert "demo" in owners


def test_a_distribution_with_the_name_of_a_built_in_plugin_stands_beside_it(tmp_path: Path) -> None:
    """Both were set aside: to install a package switched the built-in plugin off."""
    site = quickly_installed(tmp_path, "greedy", "demo", DATASET.format(hook="clocs_datasets", name="greedy"))
    done = clocs(site, "plugins", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    offered = {one["name"]: one["plugin"] for one in json.loads(done.stdout)["offers"] if one["kind"] == "dataset"}
    assert (offered["demo"], offered["greedy"]) == ("demo", "clocs-greedy:demo")
