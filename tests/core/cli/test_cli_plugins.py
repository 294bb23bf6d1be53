"""`clocs plugins`, and the options that stand anywhere on the line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import click
import pytest
from fake_offers import offers, tiny, together
from fake_plugins import FakePoint, fake_point

from clocs_core import API_VERSION, Variant, __version__
from clocs_core.cli import main


def clocs(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    return subprocess.run([sys.executable, "-m", "clocs_core", *arguments], capture_output=True, text=True)


BROKEN = FakePoint("late", ImportError("No module named 'x'"), "clocs-late")


def test_the_list_names_every_plugin_with_its_offers() -> None:
    done = clocs("plugins")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"(clocs {__version__})" in done.stdout
    assert any(line.split()[:1] == ["method"] for line in done.stdout.splitlines())
    assert any(line.split()[:1] == ["dataset"] for line in done.stdout.splitlines())


def test_the_list_in_the_words_of_its_plugins(capsys: pytest.CaptureFixture[str]) -> None:
    listener = fake_point("listener", clocs_run_done=lambda: None)
    assert main(["plugins"], [fake_point("all", **offers()), listener, BROKEN]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "all  (fakes 1.0)"
    assert lines[1].split() == ["dataset", "tiny", "ten", "patients"]
    assert lines[-3:] == [
        "listener  (fakes 1.0)",
        "  listens to events, or adds commands",
        "late  (clocs-late)  not loaded",
    ]
    assert err.startswith("Warning: Plugin 'late' (clocs-late 1.0) could not be loaded: ImportError: ")
    assert err.count("\n") == 1


def test_two_plugins_with_one_offer_cost_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    """Before somebody asks for it: whoever installed the second one should hear of it."""
    points = [fake_point("one", clocs_datasets=lambda: [tiny()]), fake_point("two", clocs_datasets=lambda: [tiny()])]
    assert main(["plugins"], points) == 0
    out, err = capsys.readouterr()
    assert err.startswith("Warning: 2 plugins offer the dataset 'tiny': 'one' (fakes 1.0) and 'two' (fakes 1.0).")
    assert err.count("\n") == 1
    assert out.count("tiny") == 2


def test_json_has_every_option_of_every_offer(capsys: pytest.CaptureFixture[str]) -> None:
    """Other programs read it; `clocs run --help` sends people there."""
    assert main(["plugins", "--json"], [fake_point("all", **offers()), BROKEN]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"api", "plugins", "offers", "broken"}
    assert document["api"] == f"{API_VERSION[0]}.{API_VERSION[1]}"
    assert document["plugins"] == [{"name": "all", "distribution": "fakes", "version": "1.0"}]
    assert document["broken"][0]["name"] == "late"
    assert document["broken"][0]["problem"].startswith("Plugin 'late' (clocs-late 1.0) could not be loaded")
    by_name = {(offer["kind"], offer["name"]): offer for offer in document["offers"]}
    assert by_name["loss", "spread"] == {
        "plugin": "all",
        "kind": "loss",
        "name": "spread",
        "summary": "a softmax",
        "variants": {},
        "options": [{"name": "temperature", "type": "float", "default": 0.1, "help": "of the softmax"}],
    }
    assert {one["name"]: (one["type"], one["default"]) for one in by_name["encoder", "flat"]["options"]} == {
        "bias": ("bool", True),
        "widths": ("tuple[int, ...]", [4]),
    }
    assert by_name["perturbation", "noise"]["options"][0]["type"] == "float | None"
    assert by_name["method", "together"]["options"] == []


def test_json_of_what_is_installed_is_json() -> None:
    done = clocs("plugins", "--json")
    assert done.returncode == 0
    assert {plugin["distribution"] for plugin in json.loads(done.stdout)["plugins"]} >= {"clocs"}


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
    done = clocs("--version")
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


def test_the_variants_of_a_method_are_listed_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """`-o variant=` is of no use to somebody who does not know their names."""
    variants = {"old": Variant(summary="As it was.", presets={})}
    point = fake_point("more", clocs_methods=lambda: [together("varied", variants=variants)])
    assert main(["plugins"], [fake_point("all", **offers()), point]) == 0
    assert "-o variant=old: As it was." in capsys.readouterr().out
    assert main(["plugins", "--json"], [fake_point("all", **offers()), point]) == 0
    document = json.loads(capsys.readouterr().out)
    assert next(one for one in document["offers"] if one["name"] == "varied")["variants"] == {"old": "As it was."}
