"""`clocs plugins`: list the installed plugins with their distributions and offers; commands for plugin authors."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path

import click

from clocs_core.cli.output import echo
from clocs_core.cli.plugins_new import new_command
from clocs_core.cli.plugins_test import test_command
from clocs_core.cli.session import pass_session
from clocs_core.contracts.offers import Encoder, Objective, Offer
from clocs_core.plugins.api_version import shown
from clocs_core.plugins.session import Session
from clocs_core.settings.options import field_types, help_of, plain_value

SLOW = 0.25  # s: half of what a command that only tells may take
_SHOWN = (int, float, str, list, tuple, Enum, Path)  # types of defaults that the JSON has


@click.group("plugins", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every option of every offer.")
@pass_session
@click.pass_context
def plugins_command(context: click.Context, session: Session, as_json: bool) -> None:
    """List the installed plugins; make or test one."""
    if context.invoked_subcommand is not None:
        return
    if as_json:
        echo(json.dumps(_document(session), indent=2))
        return
    names = [item.offer.name for shelf in session.catalogue.shelves() for item in shelf]
    width = max(16, *(len(name) + 2 for name in names)) if names else 16
    for plugin in session.host.plugins:
        echo(f"{plugin.name}", bold=True, nl=False)
        slow = f"  takes {plugin.seconds:.1f} s to import, in every command" if plugin.seconds > SLOW else ""
        echo(f"  ({plugin.distribution} {plugin.version}){slow}")
        rows = [
            (item.offer.kind, item.offer.name, _summary(item.offer), getattr(item.offer, "variants", {}))
            for shelf in session.catalogue.shelves()
            for item in shelf
            if item.plugin == plugin
        ]
        for kind, name, summary, variants in rows:
            echo(f"  {kind:<13}{name:<{width}}{summary}")
            for variant, about in variants.items():
                echo(f"  {'':<{13 + width}}-o variant={variant}: {about.summary}")
        if not rows:
            echo("  listens to events, or adds commands")
    for broken in session.host.broken:
        echo(f"{broken.name}", bold=True, nl=False)
        echo(f"  ({broken.distribution})  not loaded")


plugins_command.add_command(new_command)
plugins_command.add_command(test_command)


def _summary(offer: Offer) -> str:
    """Return the summary, with a word on encoders that have a sequence: some methods need one."""
    has_sequence = isinstance(offer, Encoder) and offer.sequence
    return f"{offer.summary.rstrip('.')}. Has a sequence." if has_sequence else offer.summary


def _document(session: Session) -> dict[str, object]:
    import attrs

    offers = [
        {
            "plugin": item.plugin.name,
            "kind": item.offer.kind,
            "name": item.offer.name,
            "summary": item.offer.summary,
            **({"sequence": item.offer.sequence} if isinstance(item.offer, (Encoder, Objective)) else {}),
            "variants": {name: one.summary for name, one in getattr(item.offer, "variants", {}).items()},
            "options": [
                {
                    "name": field.name,
                    "type": str(field_types(item.offer.options)[field.name])
                    .removeprefix("<class '")
                    .removesuffix("'>"),
                    "default": plain_value(field.default) if isinstance(field.default, _SHOWN) else None,
                    "help": help_of(field),
                }
                for field in attrs.fields(item.offer.options)
            ],
        }
        for shelf in session.catalogue.shelves()
        for item in shelf
    ]
    return {
        "api": shown(),
        "plugins": [
            {
                "name": one.name,
                "distribution": one.distribution,
                "version": one.version,
                "seconds": round(one.seconds, 3),
            }
            for one in session.host.plugins
        ],
        "offers": offers,
        "broken": [
            {"name": one.name, "distribution": one.distribution, "problem": one.problem} for one in session.host.broken
        ],
    }
