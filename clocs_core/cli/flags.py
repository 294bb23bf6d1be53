"""Make flags from settings classes, and accept the options of plugins as flags.

A setting has one definition, in clocs_core/settings/sections.py: its flag, its help and its default come from there.
Any other flag, such as `--temperature 0.05`, is an option of a method, data set, encoder or loss.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeAlias, TypeVar

import attrs
import click

from clocs_core.cli.completing import COMPLETED, complete_choices
from clocs_core.cli.wording import as_flags
from clocs_core.contracts.offers import Defaults
from clocs_core.errors import SettingsError
from clocs_core.plan.layers import Assignment, split_assignment
from clocs_core.settings.options import field_types, help_of, metavar_of

F = TypeVar("F", bound=Callable[..., Any])

Sections: TypeAlias = Mapping[str, type[Any]]
"""The settings class of each table, by the table's name."""

DATA_ROOT_HELP = (
    "Folder with one folder per data set. Default: CLOCS_DATA, or this platform's folder for application data."
)

_OR_ELSE = ", or that of the data set, the method or the encoder"
_OTHERS = "clocs.other_flags"  # key of a context for flags that are options of plugins


class AnyOption(click.Command):
    """A command that accepts the options of plugins as flags: `--temperature 0.05`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store flags that core does not know, each with its value, and parse the rest."""
        known = {name for one in self.get_params(ctx) for name in (*one.opts, *one.secondary_opts)}
        rest: list[str] = []
        others: list[str] = []
        left = list(args)
        while left:
            word = left.pop(0)
            name, equals, _ = word.partition("=")
            if not word.startswith("--") or name in known or word == "--":
                rest.append(word)
                continue
            has_value = not equals and left and not left[0].startswith("--")
            others.append(f"{word}={left.pop(0)}" if has_value else word)
        ctx.meta[_OTHERS] = others
        try:
            return super().parse_args(ctx, rest)
        except click.MissingParameter as problem:
            asked = () if problem.param is None else problem.param.opts
            for word, flag in _near(others, asked):
                hint = f"Did you mean {flag!r} by {word!r}?"
                raise click.MissingParameter(hint, ctx=problem.ctx, param=problem.param) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Where a setting is refused or missing, name the flag that a misspelt one resembles."""
        try:
            return super().invoke(ctx)
        except SettingsError as problem:
            flags = [name for one in self.get_params(ctx) for name in one.opts if name.startswith("--")]
            for word, flag in _near(plugin_flags(ctx), flags):
                field, right = (one.removeprefix("--").replace("-", "_") for one in (word, flag))
                text = str(problem)
                if (f"option {field!r}." in text and "Did you mean" not in text) or f"`{right}=" in text:
                    said = text.partition(" There is:")[0]
                    raise SettingsError(f"{said} Did you mean `{flag}` by `{word}`?") from None
            raise


def _near(others: Sequence[str], flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each flag that core does not know with the flag of core that it resembles most."""
    for word in others:
        name = word.partition("=")[0]
        for flag in get_close_matches(name, flags, n=1, cutoff=0.8):
            yield name, flag


_OTHER_NAMES = {"method": "plugin", "channels": "leads"}  # settings that have a second flag


def with_processes(work: str) -> Callable[[F], F]:
    """Add --gpus and --processes. work: what the processes share, such as "training"."""
    many = click.IntRange(min=1)
    on_any = f"Share the {work} among N processes of this machine: on CPUs with --device cpu, else with a GPU each."
    on_gpus = f"Share the {work} among N processes, with a GPU each."

    def add(command: F) -> F:
        command = click.option("--processes", type=many, metavar="N", help=on_any)(command)
        return click.option("--gpus", type=many, metavar="N", help=on_gpus)(command)

    return add


with_workers = click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="one per core",
    help="Processes that read recordings.",
)

_assignments = partial(click.option, "-o", "--option", "assignments", metavar="NAME=VALUE", multiple=True)
with_options = _assignments(
    help="Option of any part: `-o temperature=0.05`, or `-o loss.temperature=0.05`. The same as --temperature 0.05."
)
with_dataset_options = _assignments(help="Option of the data set, or a setting of it, such as `-o normalise=none`.")

with_device = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Device to compute on.",
)


def with_settings(sections: Sections, only: Sequence[str] = (), **helps: str) -> Callable[[F], F]:
    """Declare a flag for every setting of some sections, in their order.

    only: the settings to declare; default: all. helps: help texts that differ in this command, by setting.
    """

    def add(command: F) -> F:
        named = [(cls, field) for cls in sections.values() for field in attrs.fields(cls)]
        for cls, field in reversed(named):
            if not only or field.name in only:
                command = _option(cls, field, helps.get(field.name, ""))(command)
        return command

    return add


def _option(cls: type[Any], field: attrs.Attribute[Any], other_help: str) -> Callable[[F], F]:
    text = as_flags(other_help or help_of(field), ("random", "root"))
    plain_default = isinstance(field.default, (int, float, str)) and field.default not in ("", False)
    where = _OR_ELSE if field.name in attrs.fields_dict(Defaults) else ""
    shown = f"  [default: {field.default}{where}]" if plain_default and not other_help and "default" not in text else ""
    kind = field_types(cls)[field.name]
    metavar = metavar_of(field, kind)
    flag = f"--{field.name.replace('_', '-')}"
    names = COMPLETED.get(field.name) or complete_choices(kind)
    option = click.option(flag, field.name, metavar=metavar, help=f"{text}{shown}", shell_complete=names)
    other = _OTHER_NAMES.get(field.name)
    if other is None:
        return option
    second = click.option(
        f"--{other}",
        f"{field.name}_as_{other}",
        metavar=metavar,
        help=f"The same as {flag}.",
        shell_complete=names,
    )
    return lambda command: option(second(command))


def plugin_flags(context: click.Context) -> tuple[str, ...]:
    """Return the flags that are options of plugins, such as `--temperature=0.05`."""
    return tuple(context.meta[_OTHERS])


def given_flags(context: click.Context, sections: Sections) -> list[str]:
    """List the flags that were given, of some sections and of plugins."""
    named = [field.name for cls in sections.values() for field in attrs.fields(cls)]
    both = [*named, *(f"{name}_as_{other}" for name, other in _OTHER_NAMES.items())]
    given = [name.rpartition("_as_")[2] for name in both if context.params.get(name) is not None]
    return [
        *(f"--{name.replace('_', '-')}" for name in given),
        *(word.partition("=")[0] for word in plugin_flags(context)),
    ]


def read_assignments(context: click.Context, sections: Sections, assignments: Sequence[str] = ()) -> list[Assignment]:
    """Read all settings that were given: flags of core, flags of plugins, and `-o`; later ones win."""
    given = [
        Assignment(table, field.name, text)
        for table, cls in sections.items()
        for field in attrs.fields(cls)
        if (text := _text_of(context, field.name)) is not None
    ]
    return [*given, *map(_other_flag, plugin_flags(context)), *map(split_assignment, assignments)]


def _text_of(context: click.Context, name: str) -> str | None:
    other = _OTHER_NAMES.get(name)
    both = [context.params.get(name), context.params.get(f"{name}_as_{other}")]
    if all(text is not None for text in both):
        raise SettingsError(f"--{other} and --{name} are two names for one setting; give one of them.")
    return next((text for text in both if text is not None), None)


def _other_flag(word: str) -> Assignment:
    """Parse `--temperature=0.05` as an assignment. Raises SettingsError where the value is missing."""
    name, equals, value = word.removeprefix("--").partition("=")
    if not equals:
        raise SettingsError(f"--{name} needs a value.")
    table, _, field = name.replace("-", "_").rpartition(".")
    if field == "leads":  # the commands of `clocs data` declare no flag for settings
        field = "channels"
    # --sampling-rate is the rate of the recordings; -o sets the rate of a framing.
    return Assignment("dataset" if field == "sampling_rate" and not table else table, field, value)
