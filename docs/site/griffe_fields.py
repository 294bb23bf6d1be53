"""Show the fields of attrs classes, and what docstrings say of fields and arguments, as tables.

griffe itself knows the fields of dataclasses only, and docstrings with headings such as `Args:` only. Its extension
griffe-fieldz 0.5 knows attrs, but it imports every module of the package (7.5 s of processor time for a build in place
of 3.7 s), shows a function that is a default with its address in memory, describes the 6 public fields whose factory is
`dict` by the docstring of `dict`, and leaves all that our docstrings say of a name in running text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import griffe
from options_page import written_types

from clocs_core.api import arguments
from clocs_core.settings.options import help_of


class Fields(griffe.Extension):
    """Adds a table of its fields to every attrs class, and one of its arguments to a function that describes them.

    A function that takes settings gets a table of them too.
    """

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Add the table of an attrs class."""
        fields = {name: one for part in [*reversed(cls.mro()), cls] for name, one in _own_fields(part).items()}
        if fields and cls.docstring is not None:
            described = {name: _remark(one) for name, one in fields.items()} | _take_items(cls.docstring, fields)
            rows = [_row(name, one.annotation, _default(one.value), described) for name, one in fields.items()]
            cls.docstring.parsed.append(griffe.DocstringSectionParameters(rows, "Fields:"))

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Add the table of a function, where its docstring describes an argument."""
        taken = {one.name: one for one in func.parameters}
        described = _take_items(func.docstring, taken) if func.docstring is not None else {}
        if func.docstring is not None and described:
            rows = [_row(name, taken[name].annotation, taken[name].default, described) for name in described]
            func.docstring.parsed.append(griffe.DocstringSectionParameters(rows, "Arguments:"))
            settings = list(_settings_of(func, taken))
            if settings:
                func.docstring.parsed.append(griffe.DocstringSectionParameters(settings, "Settings:"))


def _own_fields(cls: griffe.Class) -> dict[str, griffe.Attribute]:
    """The fields that an attrs class declares itself."""
    if not any(one.callable_path in ("attrs.frozen", "attrs.define") for one in cls.decorators):
        return {}
    return {
        name: one
        for name, one in cls.members.items()
        if isinstance(one, griffe.Attribute) and one.annotation is not None and "instance-attribute" in one.labels
    }


def _default(value: str | griffe.Expr | None) -> str | griffe.Expr | None:
    """The default of a field that is assigned `value`, or None where it has to be given."""
    if not isinstance(value, griffe.ExprCall) or value.canonical_path != "attrs.field":
        return value
    given = {one.name: one.value for one in value.arguments if isinstance(one, griffe.ExprKeyword)}
    return f"{given['factory']}()" if "factory" in given else given.get("default")


def _settings_of(func: griffe.Function, taken: Mapping[str, object]) -> Iterator[griffe.DocstringParameter]:
    """The settings that a decorator adds to the signature of a function, from their one definition."""
    decorator = f"{arguments.__name__}.{arguments.with_settings_in_signature.__name__}"
    for one in func.decorators:
        if one.callable_path == decorator and isinstance(one.value, griffe.ExprCall):
            sections, *others = map(str, one.value.arguments)
            left_out = {*taken, *map(ast.literal_eval, others)}
            for section in getattr(arguments, sections).values():
                kinds = written_types(section)
                for field in (field for field in attrs.fields(section) if field.name not in left_out):
                    yield _row(field.name, kinds[field.name], repr(field.default), {field.name: help_of(field)})


def _remark(field: griffe.Attribute) -> str:
    """The comment beside a field, such as its unit or its shape."""
    remark = " ".join(field.lines).partition("  # ")[2]
    return "" if remark.startswith(("type:", "noqa")) else remark


def _row(
    name: str, annotation: str | griffe.Expr | None, default: str | griffe.Expr | None, described: Mapping[str, str]
) -> griffe.DocstringParameter:
    return griffe.DocstringParameter(name, description=described.get(name, ""), annotation=annotation, value=default)


def _take_items(docstring: griffe.Docstring, names: Mapping[str, object]) -> dict[str, str]:
    """Take what a docstring says of `names` out of its text: sentences that begin with `name: ` or `name(…)`."""
    name = "|".join(map(re.escape, names)) or r"(?!)"
    call = rf"(?:{name})\((?:[^()]|\([^()]*\))*\)(?: -> (?:\w+\.)*[A-Z]\w*| -> \w+(?=,))?"
    begin = rf"(?:^|(?<=[.;] ))(?:(?P<names>(?:{name})(?:, (?:{name}))*): |(?P<call>{call}))"
    end = rf"(?={re.sub(r'[?]P<[a-z]+>', '?:', begin)}|\n\n|\nRaises |\Z)"
    found: dict[str, str] = {}

    def take(item: re.Match[str]) -> str:
        term = f"`{item['call']}`" if item["call"] else ""
        for one in (item["names"] or item["call"].partition("(")[0]).split(", "):
            found[one] = (term + item["text"]).rstrip(" \n;")
        return ""

    rest = re.sub(rf"{begin}(?P<text>.*?){end}", take, docstring.value, flags=re.DOTALL | re.MULTILINE)
    docstring.parsed[:] = [griffe.DocstringSectionText(rest.strip())]
    return found
