"""Plugins add commands; none can replace or remove one that is there, and who tries is named."""

from __future__ import annotations

import click
import pytest
from fake_plugins import fake_point

from clocs_core.cli.plugin_commands import add_commands
from clocs_core.plugins.host import load_plugins


@click.command("run")
def run() -> None:
    """Ours."""


@click.group("data")
def data() -> None:
    """Ours."""


@data.command("list")
def listed() -> None:
    """Ours."""


def built(*hooks):
    cli = click.Group(commands={"run": run, "data": data})
    points = [fake_point(name, "strange", clocs_commands=hook) for name, hook in zip("abc", hooks, strict=False)]
    warned = []
    add_commands(cli, load_plugins(points), warned.append)
    return cli, warned


def adds(name):
    def clocs_commands(cli):
        cli.add_command(click.Command(name, callback=lambda: None))

    return clocs_commands


def replaces_below(cli):
    cli.commands["data"].add_command(click.Command("list"))


def patches(cli):
    cli.commands["run"].callback = print


def removes(cli):
    del cli.commands["run"]


def fails(cli):
    cli.add_command(click.Command("run"))
    raise ValueError("half way")


def test_commands_of_plugins_are_added():
    cli, warned = built(adds("hello"), adds("bye"))
    assert set(cli.commands) == {"run", "data", "hello", "bye"}
    assert warned == []


@pytest.mark.parametrize(
    ("hook", "name"), [(adds("run"), "run"), (replaces_below, "list"), (patches, "run"), (removes, "run")]
)
def test_a_command_that_is_there_stays_and_who_replaces_it_is_named(hook, name):
    ours = run.callback
    cli, (warning,) = built(hook)
    assert cli.commands["run"] is run
    assert run.callback is ours
    assert data.commands == {"list": listed}
    assert warning == (
        f"plugin 'a' (strange 1.0) tried to replace the command {name!r}, which stays as it was. It has to give its "
        "own command another name."
    )


def test_the_first_of_two_plugins_keeps_its_command_and_a_failing_one_changes_nothing():
    cli, warned = built(adds("hello"), adds("hello"), fails)
    assert "plugin 'b' (strange 1.0) tried to replace the command 'hello'" in warned[0]
    assert warned[1].startswith("plugin 'c' (strange 1.0) failed in clocs_commands: ValueError: half way")
    assert "plugin 'c' (strange 1.0) tried to replace the command 'run'" in warned[2]
    assert cli.commands["run"] is run
