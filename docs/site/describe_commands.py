"""The command line as a page: every command, what it does, its arguments and its flags."""

from __future__ import annotations

from collections.abc import Iterator

import click
from markdown_text import as_markdown, escape, table

from clocs_core.cli.main import build_cli
from clocs_core.plugins.host import installed_entry_points
from clocs_core.plugins.session import Session, open_session

__all__ = ["built_in_session", "commands_page"]

INTRODUCTION = """# Commands

Every command of clocs with the built-in plugins. A plugin can [add commands](../hooks.md#clocs_commands) of its own.
This page is made from the program: `clocs COMMAND --help` says the same.
"""


def commands_page() -> str:
    """The page, in Markdown."""
    cli = build_cli(built_in_session())
    context = click.Context(cli, info_name="clocs", help_option_names=["-h", "--help"])
    return "\n".join([INTRODUCTION, *describe(context)])


def built_in_session() -> Session:
    """The session that a fresh installation has, whatever else this machine has installed."""
    ours = [point for point in installed_entry_points() if point.dist is not None and point.dist.name == "clocs"]
    return open_session(ours, (), False)


def describe(context: click.Context) -> Iterator[str]:
    """A command and those below it."""
    command = context.command
    yield f"## {context.command_path}\n"
    yield f"```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n"
    yield as_markdown(command.help or "")
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    flags = [record for one in options if (record := one.get_help_record(context))]
    yield table(("flag", "what it does"), [(f"`{flag}`", escape(text)) for flag, text in flags])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from describe(click.Context(below, parent=context, info_name=name))
