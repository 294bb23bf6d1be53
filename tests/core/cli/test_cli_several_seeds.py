"""`clocs run --seeds`: what it refuses, what it prints, how it goes on, and its exit code where a seed fails."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_plugins import points
from fake_runs import RUN
from no_pictures import without_pictures

from clocs_core.cli import main
from clocs_core.errors import NonFiniteLoss
from clocs_core.report.times import time_lines
from clocs_core.train import health

pytestmark = pytest.mark.usefixtures("no_pictures")


def run(place: Path, *words: str) -> list[str]:
    return [*RUN, "--workers", "1", "--data-root", str(place / "data"), *words]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two seeds in it, 5 and 6, and with data beside them."""
    folder = tmp_path_factory.mktemp("seeds")
    with without_pictures():
        assert main(run(folder, "--seed", "5", "--seeds", "2", "--out", str(folder / "two")), points()) == 0
    return folder


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    assert main(list(words), points()) == code
    return " ".join(capsys.readouterr().err.split())


def test_every_seed_has_a_whole_run_folder_that_other_commands_read(place: Path, tmp_path: Path, capsys: Any) -> None:
    assert sorted(path.name for path in (place / "two").iterdir() if path.is_dir()) == ["seed5", "seed6"]
    one = tmp_path / "one"
    assert main(run(place, "--seed", "5", "--temperature", "0.5", "--out", str(one)), points()) == 0
    capsys.readouterr()
    assert main(["compare", str(place / "two"), str(one)], points()) == 0
    compared = capsys.readouterr().out
    assert "5, 6" in compared
    assert str(place / "two" / "seed6") in compared.replace("\n", "")
    words = ["evaluate", str(place / "two" / "seed6"), "--dataset", "tiny", "--data-root", str(place / "data")]
    assert main([*words, "--device", "cpu", "-o", "resamples=10", "-o", "permutations=10"], points()) == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--seeds", "0"], "Invalid value for '--seeds': 0 is not in the range 1<=x<=1000."),
        (
            ["--seeds", "2", "--processes", "2"],
            "Error: --seeds trains in one process, and --gpus or --processes shares",
        ),
        (["--seeds", "2", "--profile"], "Error: --profile measures the steps of one run; leave out --seeds."),
    ],
)
def test_what_cannot_be_done_with_several_seeds_is_refused(
    place: Path, tmp_path: Path, capsys: Any, words: list[str], problem: str
) -> None:
    assert problem in said(capsys, *run(place, *words, "--out", str(tmp_path / "s")))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_has_something_else_is_refused(place: Path, capsys: Any) -> None:
    two, one = str(place / "two"), str(place / "two" / "seed5")
    found = said(capsys, *run(place, "--seeds", "2", "--out", two))
    assert "has runs of several seeds already. Choose another folder with `--out …`, or, if they were" in found
    assert f"go on with them: `clocs run --resume {two}`." in found
    assert f"{one} is there already." in said(capsys, *run(place, "--seeds", "2", "--out", one))
    assert f"give the folder of one of them, such as {one}." in said(capsys, "evaluate", two, "--dataset", "tiny")
    assert "--resume uses the run's own settings; leave out --seeds." in said(
        capsys, "run", "--resume", two, "--seeds", "2"
    )


def test_a_dry_run_says_what_all_seeds_would_take(place: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "s"
    assert main(run(place, "--seed", "3", "--seeds", "4", "--dry-run", "--out", str(out)), points()) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Would do so for 4 seeds, 3 to 6, one after the other, each in a folder of its own there (seed3 …)" in told
    assert not out.exists()


def test_a_finished_folder_says_so(place: Path, capsys: Any) -> None:
    assert main(["run", "--resume", str(place / "two")], points()) == 0
    assert f"is finished: see {place / 'two' / 'summary.html'}" in capsys.readouterr().out


def test_a_seed_whose_folder_was_removed_is_made_again(place: Path, tmp_path: Path, capsys: Any) -> None:
    """As the advice for a damaged one says; the summary alone said that all is there."""
    folder = shutil.copytree(place / "two", tmp_path / "two")
    lost, *_ = sorted(path for path in folder.iterdir() if path.name.startswith("seed") and path.is_dir())
    before = json.loads((lost / "report.json").read_text())["scores"]
    shutil.rmtree(lost)
    assert main(["run", "--resume", str(folder)], points()) == 0
    assert json.loads((lost / "report.json").read_text())["scores"] == before


def test_a_seed_that_fails_is_named_and_gives_the_exit_code_and_resuming_makes_it(
    place: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(place / "two", copy)
    for left in (copy / "seed6" / "report.json", copy / "seed6" / "checkpoint.safetensors", copy / "summary.json"):
        left.unlink()
    real = health.measure
    monkeypatch.setattr(health, "measure", _fail)
    assert main(["run", "--resume", str(copy)], points()) == 2
    printed = capsys.readouterr()
    assert "Warning: seed 6: it ended with an error, and the others go on: NonFiniteLoss: It is not." in printed.err
    assert (
        f"Seed 6 of 2 seeds ended with an error; the others are done. Resume: clocs run --resume {copy}" in printed.err
    )
    assert printed.err.splitlines()[-1] == "Error: It is not."
    assert f"Summary: {copy / 'summary.html'}" in printed.out
    assert "Seed 6 is missing here: it ended with an error." in printed.out
    monkeypatch.setattr(health, "measure", real)
    assert main(["run", "--resume", str(copy)], points()) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Means of 2 seeds, with 95 % intervals over seeds and patients." in shown
    assert "2 seeds): the interval over seeds and patients" in shown
    for name in ("metrics.jsonl", "predictions.npz", "settings.toml"):
        whole, resumed = (where / "seed6" / name for where in (place / "two", copy))
        if name != "metrics.jsonl":  # has times
            assert whole.read_bytes() == resumed.read_bytes()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three seeds of simulated recordings, of which the last one is not finished."""
    folder = tmp_path_factory.mktemp("demo")
    small = "--plugin cmsc --dataset demo --batch-size 16 -o patients=12 -o resamples=20 -o permutations=10 --epochs 1"
    words = ["run", *small.split(), "--device", "cpu", "--workers", "1", "--data-root", str(folder / "data")]
    with without_pictures():
        assert main([*words, "--seeds", "3", "--out", str(folder / "k")]) == 0
    for left in (folder / "k" / "seed2" / "report.json", folder / "k" / "summary.json"):
        left.unlink()
    return folder / "k"


def break_settings(seed: Path) -> str:
    """Damage the settings of a run that is not finished."""
    (seed / "report.json").unlink()
    settings = seed / "settings.toml"
    settings.write_text(settings.read_text().replace("[run]", "[run"))
    return "settings.toml is not a TOML file"


def cut_predictions(seed: Path) -> str:
    """Cut short the predictions of a run that is finished."""
    (seed / "predictions.npz").write_bytes((seed / "predictions.npz").read_bytes()[:500])
    return "predictions.npz holds no predictions that can be read"


@pytest.mark.parametrize("damage", [break_settings, cut_predictions])
def test_a_damaged_seed_does_not_keep_the_others_back_and_is_made_again_once_it_is_removed(
    demo: Path, tmp_path: Path, capsys: Any, damage: Callable[[Path], str]
) -> None:
    k = tmp_path / "k"
    shutil.copytree(demo, k)
    problem = damage(k / "seed1")
    assert main(["run", "--resume", str(k)]) == 2
    printed = capsys.readouterr()
    assert f"Warning: seed 1: it ended with an error, and the others go on: {k / 'seed1'}/{problem}" in printed.err
    assert f"Seed 1 of 3 seeds ended with an error; the others are done. Resume: clocs run --resume {k}" in printed.err
    last = printed.err.splitlines()[-1]
    assert last.startswith(f"Error: {k / 'seed1'}/{problem}: ")
    assert last.endswith(f". To have seed 1 made again, remove the folder {k / 'seed1'} and resume.")
    assert f"Summary: {k / 'summary.html'}" in printed.out
    summary = json.loads((k / "summary.json").read_text())
    assert (summary["seeds"], summary["missing"]) == ([0, 2], [1])
    shutil.rmtree(k / "seed1")
    assert main(["run", "--resume", str(k)]) == 0
    assert json.loads((k / "summary.json").read_text())["seeds"] == [0, 1, 2]


def test_where_all_seeds_are_damaged_each_is_named(demo: Path, tmp_path: Path, capsys: Any) -> None:
    k = tmp_path / "k"
    shutil.copytree(demo, k)
    for seed in (0, 1):
        break_settings(k / f"seed{seed}")
    (k / "seed2" / "settings.toml").write_text("=")
    assert main(["run", "--resume", str(k)]) == 2
    printed = capsys.readouterr()
    for seed in range(3):
        assert f"To have seed {seed} made again, remove the folder {k / f'seed{seed}'} and resume." in printed.err
    assert "Seed 0, 1, 2 of 3 seeds ended with an error" in printed.err
    assert not (k / "summary.json").exists()


def test_the_time_of_the_whole_command_is_told_and_kept(demo: Path, tmp_path: Path, capsys: Any) -> None:
    k = tmp_path / "k"
    shutil.copytree(demo, k)
    assert main(["run", "--resume", str(k)]) == 0
    said = capsys.readouterr().err
    summary = json.loads((k / "summary.json").read_text())
    assert list(summary["seconds"]) == ["start", "prepare", "runs", "summarise"]
    assert time_lines(summary["seconds"]) in said
    assert '<td class="">make the runs</td>' in (k / "summary.html").read_text()


def _fail(*_: object) -> None:
    raise NonFiniteLoss("It is not.")


def test_without_a_folder_the_name_has_the_first_and_the_last_seed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(run(place, "--seed", "3", "--seeds", "4", "--dry-run"), points()) == 0
    assert "Would write runs/together-tiny-s3-6-" in capsys.readouterr().out
