"""`clocs plugins new`: write a working plugin whose parts you replace by your own."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.errors import SettingsError
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    from clocs_core.plugins.catalogue import Catalogue
    from clocs_core.scaffold.naming import Names


@click.command("new")
@click.argument("name")
@click.option(
    "--kind",
    "kinds",
    metavar="KIND,…",
    multiple=True,
    help="Kinds of parts: dataset, views, perturbation, encoder, loss, objective, method, metric, protocol, section, "
    "grid, executor, listener, command. A method adds views, an encoder and a loss. "
    "Default: dataset, perturbation and method.",
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
    for step in (f"cd {folder}", "pip install '.[test]'", "clocs plugins test", "pytest"):
        echo(f"  {step}")
    through = [] if "method" in chosen else [kind for kind in chosen if kind in ("views", "loss", "objective")]
    if {*chosen} - {*through, "command"} and (command := _first_run(session.catalogue, names, chosen)):
        echo(f"  {command}")
    if "command" in chosen:
        echo(f"  clocs {names.plugin} --help")
    for kind in through:
        echo(f"A run finds its {kind} through a method that names it; `--kind method` writes one.")


def _first_run(catalogue: Catalogue, names: Names, chosen: Sequence[str]) -> str:
    """Return the command that runs what was written, with installed parts beside it; "" where one is missing."""
    simulated = [item.offer.name for item in catalogue.datasets if item.offer.embedded]
    method = names.plugin if "method" in chosen else _plain_method(catalogue)
    dataset = names.plugin if "dataset" in chosen else simulated[0] if simulated else ""
    if not method or not dataset:
        return ""
    encoder = f" --encoder {names.plugin}-conv" if "encoder" in chosen and "method" not in chosen else ""
    perturbed = "perturbation" in chosen and "method" not in chosen
    perturbation = f" -o perturbations={names.plugin}-drift" if perturbed else ""
    return f"clocs run --method {method} --dataset {dataset}{encoder}{perturbation}"


def _plain_method(catalogue: Catalogue) -> str:
    """Return the first installed method that any recordings serve: it reads one channel and needs no perturbation."""
    for item in sorted(catalogue.methods, key=lambda one: one.offer.name):
        views = [one.offer for one in catalogue.views if one.offer.name == item.offer.views]
        if item.offer.loss is None or not views:
            continue
        needs = views[0].needs(views[0].options())
        if (needs.channels, needs.encoders, needs.perturbations) == ("each", 1, "any"):
            return item.offer.name
    return ""


def _refuse_taken(session: Session, names: Names) -> None:
    """Refuse names that are installed already: the second plugin of a name is called DISTRIBUTION:NAME."""
    catalogue = session.catalogue
    if names.plugin in session.host.names():
        raise SettingsError(f"A plugin {names.plugin!r} is installed already. Choose another name.")
    for shelf in (catalogue.datasets, catalogue.methods):
        if names.plugin in shelf.names():
            raise SettingsError(f"A {shelf.kind.kind} {names.plugin!r} is installed already. Choose another name.")
    if find_spec(names.package) is not None:
        raise SettingsError(f"A module {names.package!r} is there already, for `import`. Choose another name.")
