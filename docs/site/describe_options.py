"""Settings and options as a page: what `-o` and a settings file can say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
from describe_commands import built_in_session
from describe_objects import default_of, type_of
from markdown_text import escape, table

from clocs_core.settings.options import help_of
from clocs_core.settings.sections import DataSettings, RunSettings, ScoringSettings, TrainSettings

__all__ = ["options_page"]

INTRODUCTION = """# Options and settings

What `-o NAME=VALUE` and a settings file (`clocs run --config FILE`) can say. A name that two parts of a run share is
given with its table: `-o loss.temperature=0.05`. This page is made from the code; `clocs plugins --json` has the
options of whatever else is installed.
"""

SETTINGS = {"run": RunSettings, "data": DataSettings, "train": TrainSettings, "evaluate": ScoringSettings}


def options_page() -> str:
    """The page, in Markdown."""
    return "\n".join([INTRODUCTION, *_settings(), *_options()])


def _settings() -> Iterator[str]:
    for name, cls in SETTINGS.items():
        yield f"## Table `[{name}]`\n"
        yield f"{escape(cls.__doc__ or '')}\n"
        yield options_table(cls)


def _options() -> Iterator[str]:
    for shelf in built_in_session().catalogue.shelves():
        items = list(shelf)
        if items:
            yield f"## {items[0].offer.kind.capitalize()}\n"
        for item in items:
            yield f"### `{item.offer.name}`\n"
            yield f"{escape(item.offer.summary)} (plugin `{item.plugin.name}`)\n"
            yield options_table(item.offer.options)


def options_table(cls: type[Any]) -> str:
    """The options of a class: name, type, default, help."""
    rows = [
        (f"`{field.name}`", f"`{type_of(field)}`", f"`{default_of(field)}`", escape(help_of(field)))
        for field in attrs.fields(cls)
    ]
    return table(("option", "type", "default", "what it is"), rows)
