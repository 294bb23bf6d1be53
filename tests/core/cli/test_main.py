"""The command itself: its global options, its version, commands of plugins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import click
import pytest
from clocs_process import run_clocs
from fake_offers import offers
from fake_plugins import FakePoint, fake_point

from clocs_core import __version__
from clocs_core.cli import main

BROKEN = FakePoint("late", ImportError("No module named 'x'"), "clocs-late")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--without", "other", "plugins", "--json"],
        ["plugins", "--without", "other", "--json"],
        ["plugins", "--json", "--without=other"],
    ],
)
def test_without_may_stand_anywhere(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever meets a broken plugin adds it to the end of the line that failed."""
    assert main(arguments, [fake_point("all", **offers()), fake_point("other")]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["plugins"]] == ["all"]


def test_without_may_be_repeated_and_silences_a_broken_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    points = [fake_point("all", **offers()), fake_point("other"), BROKEN]
    assert main(["plugins", "--without", "late", "--without", "other"], points) == 0
    out, err = capsys.readouterr()
    assert "late" not in out
    assert err == ""


def test_without_an_unknown_plugin_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "--without", "othr"], [fake_point("other")]) == 2
    assert capsys.readouterr().err == (
        "Error: No plugin 'othr' to leave out. Did you mean 'other'? `clocs plugins` lists what is installed.\n"
    )


def test_without_nothing_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "--without"], []) == 2
    assert capsys.readouterr().err == "Error: argument --without: expected one argument\n"


def test_tracing_prints_hook_calls_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """What a command answers stays clean, so that it can still be piped."""
    assert main(["plugins", "--json", "--trace-hooks"], [fake_point("all", **offers())]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    assert "clocs_datasets [hook]" in err
    assert "finish clocs_metrics" in err


def test_the_values_of_other_options_are_not_mistaken_for_global_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """`-o name=value` passes through the first reading of the line untouched, blanks and dashes included."""
    seen: list[tuple[str, ...]] = []

    def clocs_commands(cli: click.Group) -> None:
        @cli.command("echo")
        @click.option("-o", "assignments", multiple=True)
        @click.argument("rest", nargs=-1)
        def echo(assignments: tuple[str, ...], rest: tuple[str, ...]) -> None:
            seen.extend([assignments, rest])

    line = ["echo", "-o", "a b=-3", "one", "--trace-hooks", "-o", "c=--x", "two words"]
    assert main(line, [fake_point("a", clocs_commands=clocs_commands)]) == 0
    assert seen == [("a b=-3", "c=--x"), ("one", "two words")]
    capsys.readouterr()


def test_a_plugin_adds_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    def clocs_commands(cli: click.Group) -> None:
        @cli.command("greet")
        def greet() -> None:
            """Say hello."""
            click.echo("hello")

    point = fake_point("a", clocs_commands=clocs_commands)
    assert main(["greet"], [point]) == 0
    assert capsys.readouterr().out == "hello\n"
    assert main(["--help"], [point]) == 0
    assert "Say hello." in capsys.readouterr().out


@pytest.mark.parametrize("problem", [RuntimeError("no"), SystemExit("no")])
def test_a_plugin_that_fails_to_add_a_command_costs_a_warning(
    problem: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    def clocs_commands(cli: Any) -> None:
        raise problem

    assert main(["plugins"], [fake_point("a", clocs_commands=clocs_commands)]) == 0
    assert capsys.readouterr().err == (
        f"Warning: plugin 'a' (fakes 1.0) failed in clocs_commands: {type(problem).__name__}: no\n"
    )


def test_an_unknown_command_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugin"], []) == 2
    assert "Error: No such command 'plugin'." in capsys.readouterr().err


def test_the_version_is_the_one_of_the_package() -> None:
    done = run_clocs("--version")
    assert (done.returncode, done.stdout) == (0, f"clocs, version {__version__}\n")


@pytest.mark.skipif(os.name != "posix", reason="pipes end otherwise elsewhere")
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """`clocs plugins | head -1` ends the pipe early."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "clocs_core", "plugins"], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert done.stderr == ""  # click leaves with 1, without a word


@pytest.mark.parametrize("words", [[], ["data"], ["plugins"]])
def test_the_list_of_commands_has_whole_sentences(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence that is cut off does not say what a command does."""
    assert main([*words, "--help"]) == 0
    commands = capsys.readouterr().out.split("Commands:\n")[1].split("\n\n")[0]
    assert all(line.endswith(".") and not line.endswith("...") for line in commands.splitlines()), commands


def test_quiet_and_verbose_contradict_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--quiet", "--verbose"]) == 2
    assert "give one of them" in capsys.readouterr().err


def test_threads_that_wait_soon_sleep_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would turn in a loop, and on a machine with other work a training took 27 times as long."""
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    for name in names:
        monkeypatch.setenv(name, "")  # so that the end of the test restores what was there
        monkeypatch.delenv(name)
    main(["plugins"], [])
    assert [os.environ.get(name) for name in names] == [None, "3000", "0"]
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    main(["plugins"], [])
    assert os.environ["GOMP_SPINCOUNT"] == "7"


def test_who_says_how_threads_wait_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMP_SPINCOUNT", "")
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    main(["plugins"], [])
    assert "GOMP_SPINCOUNT" not in os.environ
