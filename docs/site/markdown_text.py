"""Docstrings, help texts and tables as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Sequence

__all__ = ["as_markdown", "escape", "table"]

_CODE = re.compile(r"(`[^`]*`)")
_FLAG = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")
_MARKS = re.compile(r"([\\*_\[\]])")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing where there are no rows. The site's reader takes a bar in code as it stands."""
    lines = ["| " + " | ".join(map(_escape_bars, row)) + " |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines, ""]) if lines else ""


def escape(text: str) -> str:
    """Text in which Markdown and HTML mean nothing, but for `code`. Flags are shown as code too."""
    parts = _CODE.split(text)
    return "".join(part if part.startswith("`") else _escape_plain(part) for part in parts)


def as_markdown(docstring: str, names: Collection[str] = ()) -> str:
    """A docstring as Markdown.

    names: of arguments or fields. A line that begins with one, as `name: …` or `name(…) -> …`, becomes the item of a
    list; the lines that follow belong to it.
    """
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    return "\n\n".join(_paragraph(one, names) for one in paragraphs) + "\n"


def _escape_bars(cell: str) -> str:
    return "".join(part if part.startswith("`") else part.replace("|", r"\|") for part in _CODE.split(cell))


def _escape_plain(text: str) -> str:
    parts = _FLAG.split(text)  # every second part is a flag
    plain = [_MARKS.sub(r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    flags = [f"`{flag}`" for flag in parts[1::2]]
    return "".join(one + flag for one, flag in zip(plain, [*flags, ""], strict=True))


def _paragraph(text: str, names: Collection[str]) -> str:
    if text.startswith("    "):
        return text  # code in a docstring is indented, and so is code in Markdown
    name = "|".join(map(re.escape, names)) or r"(?!)"
    call = rf"(?:{name})\((?:[^()]|\([^()]*\))*\)(?: -> (?:\w+\.)*[A-Z]\w*| -> \w+(?=,))?"
    term = re.compile(rf"(?P<term>(?:{name})(?:, (?:{name}))*(?=: )|{call})")
    lines: list[str] = []
    listing = False
    for line in text.split("\n"):
        found = term.match(line)
        if found and not listing and lines:
            lines.append("")
        listing = listing or found is not None
        shown = f"`{found['term']}`{escape(line[found.end() :])}" if found else escape(line)
        lines.append(f"- {shown}" if found else f"  {shown}" if listing else shown)
    return "\n".join(lines)
