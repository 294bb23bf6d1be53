"""Let plugins add commands, and keep those that are there: nobody replaces `clocs run` unnoticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import click

from clocs_core.plugins.host import Host


@attrs.frozen
class _Place:
    """A command at its place in a group, as it was."""

    group: click.Group
    name: str
    command: click.Command
    callback: Callable[..., object] | None

    @property
    def is_kept(self) -> bool:
        return self.group.commands.get(self.name) is self.command and self.command.callback is self.callback

    def restore(self) -> None:
        self.command.callback = self.callback
        self.group.commands[self.name] = self.command


def add_commands(cli: click.Group, host: Host, warn: Callable[[str], None]) -> None:
    """Let every plugin add its commands. One that changes a command that was there is undone, with a warning."""
    for plugin in host.plugins:
        before = list(_places(cli))
        host.tell(plugin, "clocs_commands", warn, cli=cli)
        for place in before:
            if not place.is_kept:
                place.restore()
                warn(
                    f"plugin {plugin.name!r} ({plugin.distribution} {plugin.version}) tried to replace the command "
                    f"{place.name!r}, which stays as it was. It has to give its own command another name."
                )


def _places(group: click.Group) -> Iterator[_Place]:
    for name, command in group.commands.items():
        yield _Place(group, name, command, command.callback)
        if isinstance(command, click.Group):
            yield from _places(command)
