"""Complete names of methods, data sets, encoders, protocols and runs in a shell; `clocs completion`.

The shell calls `clocs` with the variable `_CLOCS_COMPLETE`, and click answers. Here are the names that it offers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias, get_args, get_origin

import click
from click.shell_completion import CompletionItem, get_completion_class

from clocs_core.contracts.result_offers import OWN_PROTOCOLS
from clocs_core.plugins.session import installed_session

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_VARIABLE = "_CLOCS_COMPLETE"  # the name that click derives from that of the program
_FOLDERS = (".", "runs")  # where runs are looked for
_PLACES = {
    "bash": ("~/.clocs-complete.bash", "~/.bashrc", "source ~/.clocs-complete.bash"),
    "zsh": ("~/.clocs-complete.zsh", "~/.zshrc", "source ~/.clocs-complete.zsh"),
    "fish": ("~/.config/fish/completions/clocs.fish", "", ""),
}


def _of_shelf(shelf: str, *others: str) -> Complete:
    """Offer the names of a shelf of the catalogue, and some others."""

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        names = [*others, *getattr(installed_session().catalogue, shelf).names()]
        return [CompletionItem(name) for name in sorted(names) if name.startswith(begun)]

    return complete


def complete_choices(kind: object) -> Complete | None:
    """Offer the values of a setting that has a few; None where it can have others."""
    choices = [one for part in (kind, *get_args(kind)) if get_origin(part) is Literal for one in get_args(part)]
    if not choices:
        return None
    return lambda _context, _parameter, begun: [
        CompletionItem(one) for one in map(str, choices) if one.startswith(begun)
    ]


def complete_runs(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Offer the runs of this folder and of runs/; where none fits, let the shell complete a path."""
    found = sorted(str(one.parent) for folder in _FOLDERS for one in Path(folder).glob("*/settings.toml"))
    fitting = [CompletionItem(one) for one in found if one.startswith(begun)]
    return fitting or [CompletionItem(begun, type="file")]


COMPLETED: dict[str, Complete] = {
    "method": _of_shelf("methods"),
    "dataset": _of_shelf("datasets"),
    "encoder": _of_shelf("encoders"),
    "protocol": _of_shelf("protocols", *OWN_PROTOCOLS),
    "metrics": _of_shelf("metrics"),
}
"""Settings whose values can be completed, by name."""


@click.command("completion")
@click.argument("shell", type=click.Choice(sorted(_PLACES)))
@click.pass_context
def completion_command(context: click.Context, /, shell: str) -> None:
    """Print a script that completes names in a shell.

    Commands, flags, methods, data sets, encoders, protocols and runs are completed by the Tab key.
    """
    found = get_completion_class(shell)
    assert found is not None  # click has a class for each of these shells
    source = found(context.find_root().command, {}, "clocs", _VARIABLE).source()
    file, startup, line = _PLACES[shell]
    also = f", and write `{line}` at the end of {startup}" if startup else ""
    click.echo(f"# To use it in every new shell: `clocs completion {shell} > {file}`{also}.\n{source}")
