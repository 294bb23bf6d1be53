"""A class, a function or a value of the API, as Markdown: its signature, its fields and what its docstring says."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import attrs
from markdown_text import as_markdown, table

__all__ = ["default_of", "describe", "describe_function", "type_of"]


def describe(name: str, thing: object, home: ModuleType) -> str:
    """One public name. `home`: the module that defines it, where a plain value has its docstring."""
    if inspect.isclass(thing):
        parts = _class(thing)
    elif inspect.isfunction(thing):
        parts = _function(name, thing)
    else:
        parts = _value(name, thing, home)
    return "\n".join([f"### `{name}`\n", *parts])


def describe_function(name: str, function: Any) -> str:
    """A function: its signature and its docstring."""
    return "\n".join(_function(name, function))


def type_of(field: attrs.Attribute[Any]) -> str:
    """The type of a field, as its source has it."""
    return _annotation(field.type)


def default_of(field: attrs.Attribute[Any]) -> str:
    """The default of a field as one would write it, or `required`."""
    return "required" if field.default is attrs.NOTHING else _literal(field.default)


def _class(cls: type[Any]) -> Iterator[str]:
    if issubclass(cls, BaseException):
        yield f"```python\nclass {cls.__name__}({', '.join(base.__name__ for base in cls.__bases__)})\n```\n"
    fields = attrs.fields(cls) if attrs.has(cls) else ()
    members = {name: one for name, one in vars(cls).items() if not name.startswith("_") and _is_callable(one)}
    yield as_markdown(_docstring(cls), [field.name for field in fields])
    rows = [(f"`{field.name}`", f"`{type_of(field)}`", f"`{default_of(field)}`") for field in fields]
    yield table(("field", "type", "default"), rows)
    for name, member in members.items():
        yield from _member(f"{cls.__name__}.{name}", member)


def _is_callable(member: object) -> bool:
    return inspect.isfunction(member) or isinstance(member, (property, classmethod, staticmethod))


def _member(name: str, member: Any) -> Iterator[str]:
    if isinstance(member, property):
        returned = _annotation(inspect.signature(member.fget).return_annotation) if member.fget else ""
        yield f"```python\n{name}: {returned}\n```\n"
        yield as_markdown(inspect.getdoc(member) or "")
    else:
        yield from _function(name, member.__func__ if isinstance(member, (classmethod, staticmethod)) else member)


def _function(name: str, function: Any) -> Iterator[str]:
    signature = inspect.signature(function)
    yield f"```python\n{name}{_signature(signature)}\n```\n"
    yield as_markdown(_docstring(function), list(signature.parameters))


def _value(name: str, value: object, home: ModuleType) -> Iterator[str]:
    shown = _literal(value)
    kind = type(value)
    addressed = " at 0x" in shown  # an object that has no literal
    yield (
        f"```python\n{name}: {kind.__module__.split('.')[0]}.{kind.__name__}\n```\n"
        if addressed
        else (f"```python\n{name} = {shown}\n```\n")
    )
    yield as_markdown(_said_beside(name, home))


def _docstring(thing: object) -> str:
    """Its own: attrs and exceptions would otherwise lend one of their bases'."""
    return inspect.cleandoc(getattr(thing, "__doc__", None) or "")


def _said_beside(name: str, home: ModuleType) -> str:
    """The string below an assignment, or the comment above it: Python keeps neither."""
    source = inspect.getsource(home)
    body = ast.parse(source).body
    for one, below in zip(body, [*body[1:], None], strict=True):
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                return str(below.value.value)
            above = itertools.takewhile(
                lambda line: line.startswith("#"), reversed(source.split("\n")[: one.lineno - 1])
            )
            return "\n".join(line.lstrip("# ") for line in reversed(list(above)))
    return ""


def _signature(signature: inspect.Signature) -> str:
    """One line, or an argument a line where that would be too long to read."""
    shown = [_parameter(one) for one in signature.parameters.values()]
    kinds = [one.kind for one in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = signature.return_annotation
    arrow = "" if returned is inspect.Signature.empty else f" -> {_annotation(returned)}"
    short = f"({', '.join(shown)}){arrow}"
    return short if len(short) < 90 else "(\n    " + ",\n    ".join(shown) + f",\n){arrow}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    kind = "" if parameter.annotation is inspect.Parameter.empty else f": {_annotation(parameter.annotation)}"
    default = "" if parameter.default is inspect.Parameter.empty else f" = {_literal(parameter.default)}"
    return f"{stars}{parameter.name}{kind}{default}"


def _annotation(kind: object) -> str:
    return kind if isinstance(kind, str) else inspect.formatannotation(kind)


def _literal(value: Any) -> str:
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]  # a class, though its stub says a function
        return f"{value.factory.__name__}()"
    if inspect.isroutine(value) and value.__name__.startswith("_"):
        return "…"  # a function of its module's own
    shown = value.__qualname__ if inspect.isroutine(value) or inspect.isclass(value) else repr(value)
    return re.sub(r"\b(?:clocs_core|typing|collections\.abc)(?:\.\w+)*\.(?=\w)", "", shown)
