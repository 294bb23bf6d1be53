"""Completion in a shell: the names that are offered, and the scripts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from clocs_core.cli import build_cli, main
from clocs_core.plugins.session import open_session


@pytest.fixture(scope="module")
def cli() -> click.Group:
    return build_cli(open_session())


def completed(cli: click.Group, *words: str) -> list[str]:
    """Complete the last word, which may be empty."""
    *before, begun = words
    return [one.value for one in ShellComplete(cli, {}, "clocs", "_CLOCS_COMPLETE").get_completions(before, begun)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("exp",), ["export"]),
        (("run", "--method", "cmsm"), ["cmsmlc"]),
        (("run", "--plugin", "cmsm"), ["cmsmlc"]),
        (("run", "--dataset", "ptb"), ["ptbxl"]),
        (("run", "--encoder", "resnet"), ["resnet1d"]),
        (("run", "--device", ""), ["auto", "cpu", "cuda"]),
        (("run", "--temperature", "0.1", "--dataset", "de"), ["demo"]),
        (("evaluate", "runs/a", "--protocol", "fi"), ["finetune"]),
        (("evaluate", "runs/a", "--protocol", "kn"), ["knn"]),
        (("data", "show", "card"), ["cardiology"]),
        (("embed", "runs/a", "--dataset", "card"), ["cardiology"]),
        (("completion", "z"), ["zsh"]),
    ],
)
def test_names_are_completed(cli: click.Group, words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(cli, *words) == expected


def test_runs_are_completed_and_else_a_path(cli: click.Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("runs/first", "runs/second", "here", "runs/empty"):
        (tmp_path / name).mkdir(parents=True)
        if name != "runs/empty":
            (tmp_path / name / "settings.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert completed(cli, "embed", "") == ["here", "runs/first", "runs/second"]
    assert completed(cli, "run", "--resume", "runs/f") == ["runs/first"]
    (other,) = ShellComplete(cli, {}, "clocs", "_CLOCS_COMPLETE").get_completions(["compare", "here"], "/elsewhere")
    assert (other.value, other.type) == ("/elsewhere", "file")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_says_how_to_install_it_and_is_one_of_its_shell(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert script.startswith(f"# To use it in every new shell: `clocs completion {shell} > ~/")
    assert f"_CLOCS_COMPLETE={shell}_complete" in script
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True, timeout=60)


def test_another_shell_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "'bash', 'fish', 'zsh'" in capsys.readouterr().err
