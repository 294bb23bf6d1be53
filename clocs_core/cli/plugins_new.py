"""`clocs plugins new`: write a working plugin whose parts you replace by your own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.errors import SettingsError
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    from clocs_core.scaffold.naming import Names


@click.command("new")
@click.argument("name")
@click.option(
    "--kind",
    "kinds",
    metavar="KIND,…",
    multiple=True,
    help="Kinds of offers: dataset, views, perturbation, encoder, loss, objective, method, metric. A method brings its "
    "parts. Default: all but objective and metric.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder to write to. Default: NAME.")
@pass_session
def new_command(session: Session, name: str, kinds: tuple[str, ...], out: Path | None) -> None:
    """Write a new plugin, such as clocs-plugin-eeg.

    It can be installed, tested and run at once.
    """
    from clocs_core.scaffold.naming import choose_kinds, name_plugin
    from clocs_core.scaffold.rendering import render_plugin, write_plugin

    names, chosen = name_plugin(name), choose_kinds(kinds)
    _refuse_taken(session, names)
    folder = out or Path(names.distribution)
    write_plugin(folder, render_plugin(names, chosen))
    echo(f"{folder} is a plugin with a working {', '.join(chosen)}. Next steps:")
    steps = [f"cd {folder}", "pip install '.[test]'", "clocs plugins test", "pytest"]
    if {"dataset", "method"} <= set(chosen):
        steps.append(f"clocs run --plugin {names.plugin} --dataset {names.plugin}")
    for step in steps:
        echo(f"  {step}")


def _refuse_taken(session: Session, names: Names) -> None:
    """Refuse names that are installed already: of two plugins with one name, neither is loaded."""
    catalogue = session.catalogue
    if names.plugin in session.host.names():
        raise SettingsError(f"A plugin {names.plugin!r} is installed already. Choose another name.")
    for shelf in (catalogue.datasets, catalogue.methods):
        if names.plugin in shelf.names():
            raise SettingsError(f"A {shelf.kind.kind} {names.plugin!r} is installed already. Choose another name.")
    if find_spec(names.package) is not None:
        raise SettingsError(f"A module {names.package!r} is there already, for `import`. Choose another name.")
