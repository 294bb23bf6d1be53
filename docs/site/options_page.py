"""The page of settings and options: every name that `-o` and a settings file can set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from inspect import formatannotation, get_annotations, getdoc
from typing import Any

import attrs
from built_in import session

from clocs_core.settings import sections
from clocs_core.settings.options import help_of

INTRODUCTION = """# Options and settings

Each of these is a flag (`--temperature 0.05`, or `-o temperature=0.05`), an argument in Python (`temperature=0.05`) and
a line of a settings file (`--config FILE`). A name that two parts of a run share is given with its table: `-o
loss.temperature=0.05`. This page is made from the code; `clocs plugins --json` has the options of whatever else is
installed.
"""

TABLES = {
    "run": sections.RunSettings,
    "data": sections.DataSettings,
    "train": sections.TrainSettings,
    "evaluate": sections.ScoringSettings,
    "evaluation": sections.EvaluationSettings,
    "finetune": sections.FinetuneSettings,
}


def options_page() -> str:
    """Write the page, in Markdown."""
    settings = [f"## Table `[{name}]`\n\n{_plain(getdoc(cls) or '')}\n\n{_table(cls)}" for name, cls in TABLES.items()]
    return "\n".join([INTRODUCTION, *settings, *_offers()])


def _offers() -> Iterator[str]:
    shelves = session.catalogue.shelves()
    names = Counter(item.offer.name for shelf in shelves for item in shelf)
    for shelf in shelves:
        for number, item in enumerate(shelf):
            offer, plugin = item.offer, item.plugin.name
            yield f"## {offer.kind.capitalize()}\n" if number == 0 else ""
            which = f" ({offer.kind})" if names[offer.name] > 1 else ""  # the menu shows headings without their section
            yield f"### `{offer.name}`{which}\n\n{_plain(offer.summary)} (plugin `{plugin}`)\n\n{_table(offer.options)}"


def _table(cls: type[Any]) -> str:
    kinds = written_types(cls)
    cells = [(one.name, kinds[one.name], repr(one.default), _plain(help_of(one))) for one in attrs.fields(cls)]
    rows = [f"| `{name}` | `{kind}` | `{default}` | {text} |" for name, kind, default, text in cells]
    return "\n".join(["| option | type | default | what it is |", "|---|---|---|---|", *rows, ""]) if rows else ""


def written_types(cls: type[Any]) -> dict[str, str]:
    """Return the type of every field as the source has it.

    `attrs.Attribute.type` is no longer that once cattrs has read a record of the class: it replaces names by classes.
    """
    given = {name: kind for part in reversed(cls.__mro__) for name, kind in get_annotations(part).items()}
    return {name: kind if isinstance(kind, str) else formatannotation(kind) for name, kind in given.items()}


def _plain(text: str) -> str:
    """Escape Markdown, but for `code`."""
    parts = re.split("(`[^`]*`)", text)  # every second part is code
    return "".join(one if number % 2 else re.sub(r"[\\*_\[\]|<]", r"\\\g<0>", one) for number, one in enumerate(parts))
