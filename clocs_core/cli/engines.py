"""Flags that choose an executor, for commands that can do their work elsewhere than on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    from clocs_core.contracts.jobs import Executor, ExecutorOffer

F = TypeVar("F", bound=Callable[..., Any])


def with_engine(command: F) -> F:
    """Add the flags that choose an executor and its options to a command."""
    for add in (
        click.option(
            "-e", "--engine-option", multiple=True, metavar="NAME=VALUE", help="An option of the engine. Repeatable."
        ),
        click.option("--address", help="Address of the engine, if it has one; the same as -e address=…."),
        click.option("--engine", default="local", show_default=True, help="Executor, see `clocs plugins`."),
    ):
        command = add(command)
    return command


@attrs.frozen
class Engine:
    """An executor that was asked for, with its options."""

    offer: ExecutorOffer
    options: Any
    plugins: dict[str, str]

    @property
    def is_local(self) -> bool:
        """Whether it is that of core, on this machine."""
        from clocs_core.grids.executor import LOCAL

        return self.offer is LOCAL

    def open(self, at_once: int, threads: int, say: Callable[[str], None]) -> Executor:
        """Open it for so many jobs at a time, with so many threads each."""
        from clocs_core.contracts.jobs import Workplace
        from clocs_core.grids.executor import OWN_COMMAND

        workplace = Workplace(command=OWN_COMMAND, at_once=at_once, threads=threads, plugins=self.plugins, say=say)
        return self.offer.open(self.options, workplace)


def choose_engine(session: Session, engine: str, address: str | None, engine_option: tuple[str, ...]) -> Engine:
    """Find an executor by the flags of `with_engine`. Raises SettingsError for an option that it does not have."""
    from clocs_core.grids.executor import find_executor, read_options

    offer = find_executor(session.catalogue, engine).offer
    given = (*engine_option, *((f"address={address}",) if address else ()))
    plugins = {f"{one.distribution}:{one.name}": one.version for one in session.host.plugins}
    return Engine(offer, read_options(offer, given), plugins)
