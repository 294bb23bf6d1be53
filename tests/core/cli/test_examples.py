"""Every command shows examples below its help, and each of them can be typed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
import pytest

from clocs_core.cli import build_cli, main
from clocs_core.cli.examples import EXAMPLES
from clocs_core.cli.flags import AnyOption
from clocs_core.plugins.session import open_session


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, below in getattr(group, "commands", {}).items():
        yield (*path, name), below
        yield from commands(below, (*path, name))


def test_every_command_has_examples_that_begin_with_its_name() -> None:
    for path, command in commands(build_cli(open_session(None, (), False))):
        if isinstance(command, click.Group) and not command.invoke_without_command:
            continue
        lines = [line.strip() for line in (command.epilog or "").splitlines()[2:]]
        assert lines, path
        assert all(line.startswith(f"clocs {' '.join(path)}") for line in lines), path


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_has_only_flags_that_there_are(line: str) -> None:
    command: click.Command = build_cli(open_session(None, (), False))
    for word in shlex.split(line)[1:]:
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
    known = {name for one in command.params for name in one.opts}
    options_of_data_sets = {"--sampling-rate", "--patients"} if isinstance(command, AnyOption) else set()
    assert {word for word in shlex.split(line) if word.startswith("--")} <= known | options_of_data_sets


def test_examples_are_shown_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    assert "\n    clocs run --resume runs/first\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--resum", "x"], "Did you mean `--resume` by `--resum`?"),
        (["run", "--methd", "x"], "Did you mean `--method` by `--methd`?"),
        (["embed", "r", "--ot", "z.npz"], "Missing option '--out'. Did you mean '--out' by '--ot'?"),
    ],
)
def test_a_misspelt_flag_is_answered_with_the_one_that_was_meant(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flags that no command knows are options of plugins, so that they are refused late, and in other words."""
    more = ["--method", "cmsc", "--dataset", "demo"] if "--resum" in words else []
    assert main([*words, *more]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.endswith(said)
    assert "There is:" not in error
