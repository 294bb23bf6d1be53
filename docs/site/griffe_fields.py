"""Show the fields of attrs classes, and what docstrings say of fields and arguments, as tables.

griffe itself knows the fields of dataclasses only, and docstrings with headings such as `Args:` only. Its extension
griffe-fieldz 0.5 knows attrs, but it imports every module of the package (7.5 s of processor time for a build in place
of 3.7 s), shows a function that is a default with its address in memory, describes the 6 public fields whose factory is
`dict` by the docstring of `dict`, and leaves all that our docstrings say of a name in running text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import griffe


class Fields(griffe.Extension):
    """Adds a table of its fields to every attrs class, and one of its arguments to a function that describes them."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Add the table of an attrs class."""
        fields = {name: one for part in [*reversed(cls.mro()), cls] for name, one in _own_fields(part).items()}
        if fields and cls.docstring is not None:
            described = {name: _remark(one) for name, one in fields.items()} | _take_items(cls.docstring, fields)
            rows = [_row(name, one.annotation, _default(one.value), described) for name, one in fields.items()]
            cls.docstring.parsed.append(griffe.DocstringSectionParameters(rows, "Fields:"))

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Add the table of a function, where its docstring describes an argument."""
        arguments = {one.name: one for one in func.parameters}
        described = _take_items(func.docstring, arguments) if func.docstring is not None else {}
        if func.docstring is not None and described:
            rows = [_row(name, arguments[name].annotation, arguments[name].default, described) for name in described]
            func.docstring.parsed.append(griffe.DocstringSectionParameters(rows, "Arguments:"))


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
