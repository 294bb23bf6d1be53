"""Options: attrs classes whose fields have a help text and a rule; values from TOML or text are checked strictly.

cattrs alone turns 2.7 into 2, "false" into True and a string into a tuple of letters; the hooks here refuse.
None is written as "none", so that a file can say it.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

import attrs

from clocs_core.errors import SettingsError, neighbours

if typing.TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")

_LARGEST = 2**64  # whole numbers beyond it mean nothing here, and Python refuses to print the longest


def shown(value: object, most: int = 80) -> str:
    """Return a value for a message, as Python writes it, cut to `most` characters."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits, or a list of such
        text = f"a {type(value).__name__} that is too long to print"
    return text if len(text) <= most else text[: most - 1] + "…"


def option(
    default: T,
    help: str,  # noqa: A002  click, argparse and optparse all call it help
    *,
    check: tuple[Callable[[T], bool], str] | None = None,
    choices: tuple[T, ...] = (),
    equivalent: bool = False,
    reads: bool = True,
    metavar: str = "",
) -> T:
    """Declare a field of an options class: its default, one line of help, and a rule as (predicate, "be positive").

    equivalent: for a Literal whose choices compute the same in different ways, the first after "auto" being the
    specification; `clocs verify` compares them. reads: whether the signals that a data set loads may depend on it; all
    values of one that only says who is in which part, or has which label, share prepared frames. metavar: the word for
    the value in help texts, such as HZ.
    """

    def obeys(instance: object, attribute: attrs.Attribute[T], value: T) -> None:
        if choices and value not in choices:
            raise ValueError(f"{attribute.name} must be one of {', '.join(map(str, choices))}, got {_in_words(value)}")
        if check is not None and not check[0](value):
            raise ValueError(f"{attribute.name} must {check[1]}, got {_in_words(value)}")

    about = {"help": help, "choices": choices, "equivalent": equivalent, "reads": reads, "metavar": metavar}
    made: T = attrs.field(default=default, validator=obeys, metadata=about)
    return made


def _in_words(value: object) -> str:
    """Return a value for a message; a list as its items, for Python writes one item as (50.0,)."""
    if not isinstance(value, (tuple, list)):
        return shown(value)
    return ", ".join(map(shown, value)) if value else "nothing"


def help_of(field: attrs.Attribute[Any]) -> str:
    """Return the help text of a field made by `option`, or ""."""
    return str(field.metadata.get("help", ""))


def options_that_read(options: object) -> dict[str, object]:
    """Return the options of a data set that its signals may depend on."""
    return attrs.asdict(options, filter=lambda field, _: field.metadata.get("reads", True))  # type: ignore[arg-type]


def metavar_of(field: attrs.Attribute[Any], kind: Any) -> str:
    """Return the placeholder of a field's value in help texts: its own, or one derived from its type."""
    own = field.metadata.get("metavar")
    if own:
        return str(own)
    members = [member for member in _members(kind) if member is not type(None)]
    for member in members:
        if typing.get_origin(member) is Literal:
            return "|".join(map(str, typing.get_args(member)))
        if _is_enum(member):
            return "|".join(map(word_of, member))
        if _origin(member) in (tuple, list):
            return ",".join("ABCDEFGH"[: len(several)]) if (several := _each_of(member)) else "A,B,…"
    words = {int: "N", float: "X", bool: "true|false", Path: "PATH"}
    return next((words[member] for member in members if member in words), "TEXT")


def equivalents(cls: type[Any]) -> dict[str, tuple[str, ...]]:
    """Return the fields whose choices compute the same, with those choices, the specification first."""
    kinds = field_types(cls)
    return {
        field.name: tuple(choice for choice in typing.get_args(kinds[field.name]) if choice != "auto")
        for field in attrs.fields(cls)
        if field.metadata.get("equivalent")
    }


def field_types(cls: type[Any]) -> Mapping[str, Any]:
    """Return the fields of an options class with their resolved types."""
    return _resolve_types(cls)  # type: ignore[arg-type]  # for mypy, a class may be unhashable


@cache  # a plan asks hundreds of times, and Python compiles every annotation anew: 0.4 to 0.7 ms
def _resolve_types(cls: type[Any]) -> Mapping[str, Any]:
    hints = typing.get_type_hints(cls)
    return types.MappingProxyType({field.name: hints[field.name] for field in attrs.fields(cls)})


def structure(cls: type[T], values: Mapping[str, object], table: str, arguments: bool = True) -> T:
    """Make `cls` from plain values. Raises SettingsError that names the table, the key, and what was expected.

    arguments: whether the values are settings, which a message names as arguments, or stand in a file of ours.
    """
    from cattrs import transform_error

    known = field_types(cls)
    for key in values:
        if key not in known:
            raise SettingsError(f"[{table}] has no option {key!r}.{neighbours(key, known) or ' It has none.'}")
    try:
        return _converter().structure(values, cls)
    except Exception as problem:  # cattrs groups all that hooks and validators raise
        cause, _, path = transform_error(problem, path=table, format_exception=_cause)[0].rpartition(" @ ")
        name, _, rest = cause.partition(" ")
        if path == table and name in known and rest.startswith("must "):  # by a rule of `option`
            path, cause = f"{table}.{name}", rest
        where = f"[{table}] " if path == table else f"`{path}=...`: " if arguments else f"{path}: "
        raise SettingsError(f"{where}{cause.rstrip('.')}.") from None


def plain(instance: Any) -> dict[str, object]:
    """Convert the fields of an options class to values for TOML and JSON; None becomes "none"."""
    return {field.name: plain_value(getattr(instance, field.name)) for field in attrs.fields(type(instance))}


def changed(instance: Any) -> dict[str, object]:
    """Return the fields of an options class that differ from its defaults, as `plain` has them."""
    usual = plain(type(instance)())
    return {name: value for name, value in plain(instance).items() if value != usual[name]}


def from_text(kind: Any, text: str) -> object:
    """Parse text, as typed after `-o name=`, as the type of a field. Text that does not fit is kept for `structure`
    to refuse.
    """
    members = _members(kind)
    if len(members) > 1 and type(None) in members and text.lower() == "none":
        return "none"
    for member in members:
        origin, arguments = typing.get_origin(member), typing.get_args(member)
        if member is Path:
            return Path(text).expanduser().absolute()  # independent of the current folder
        if origin in (tuple, list):
            parts = [part.strip() for part in text.split(",") if part.strip()]
            return [from_text(item, part) for item, part in zip(_items(member, len(parts)), parts, strict=True)]
        if member is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if member in (int, float):
            try:
                return member(text)
            except ValueError:
                continue
        if origin is Literal and (len(members) == 1 or text in map(str, arguments)):
            return next((choice for choice in arguments if str(choice) == text), text)
    return text


def from_value(kind: Any, value: object) -> object:
    """Convert a Python value for `structure`: NumPy's numbers to Python's, sequences to lists, None to "none"."""
    if value is None:
        return "none"
    if isinstance(value, (str, Path)) and Path in _members(kind):
        words = [one for member in _members(kind) if _origin(member) is Literal for one in typing.get_args(member)]
        return value if value in ("none", *words) else Path(value).expanduser().absolute()  # of no current folder
    if hasattr(value, "tolist"):  # an array or number of NumPy or torch
        value = value.tolist()
    if isinstance(value, (set, frozenset)):  # its order changes from process to process
        raise SettingsError(f"{value!r} is a set, which has no order; give a list.")
    several = next((member for member in _members(kind) if _origin(member) in (tuple, list)), None)
    if isinstance(value, (list, tuple)):
        items = [Any] * len(value) if several is None else _items(several, len(value))
        return [from_value(item, one) for item, one in zip(items, value, strict=True)]
    if several is not None:  # a single value where a list is expected
        return [value] if not isinstance(value, str) else from_text(kind, value)
    return value


def word_of(member: Enum) -> str:
    """Return the word for a member of an enum, in files and when typed: its value if that is text, or else its name."""
    return member.value if isinstance(member.value, str) else member.name


def _cause(problem: BaseException, _: type[Any] | None) -> str:
    if isinstance(problem, KeyError):  # cattrs looked for a field that has no default
        return "it has no default, and must be given"
    return str(problem)


def _members(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) in (Union, types.UnionType) else (kind,)


def _origin(kind: Any) -> Any:
    return typing.get_origin(kind)


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _each_of(kind: Any) -> tuple[Any, ...]:
    """Return the types of the items of a tuple of fixed length; empty where any number may stand."""
    arguments = typing.get_args(kind)
    return () if _origin(kind) is list or arguments[-1:] == (...,) else arguments


def _items(kind: Any, count: int) -> tuple[Any, ...]:
    """Return the types of `count` items of a tuple or list. Where the count is wrong, `structure` refuses it."""
    each = _each_of(kind) or (typing.get_args(kind)[0],) * count
    return (*each, *(Any,) * (count - len(each)))[:count]


def plain_value(value: object) -> object:
    """Convert the value of an option for TOML and JSON: None to "none", an enum to its word, a path to text."""
    if value is None:
        return "none"
    if isinstance(value, Enum):
        return word_of(value)
    if isinstance(value, (tuple, list)):
        return [plain_value(item) for item in value]
    return str(value) if isinstance(value, Path) else value


@cache
def _converter() -> Converter:
    from cattrs import Converter

    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook(int, _strictly(int, "a whole number"))
    converter.register_structure_hook(float, _strictly(float, "a number"))
    converter.register_structure_hook(bool, _strictly(bool, "true or false"))
    converter.register_structure_hook(str, _strictly(str, "text"))
    converter.register_structure_hook(Path, _structure_path)
    converter.register_structure_hook_func(lambda kind: len(_members(kind)) > 1, _structure_union)
    converter.register_structure_hook_func(lambda kind: _origin(kind) in (tuple, list), _structure_items)
    converter.register_structure_hook_func(_is_enum, _structure_enum)
    converter.register_structure_hook_func(lambda kind: _origin(kind) is Literal, _structure_literal)
    return converter


def _strictly(kind: type[T], expected: str) -> Callable[[object, type[T]], T]:
    def check(value: object, asked: type[T]) -> T:
        if _is_enum(asked):  # such as class Mode(str, Enum)
            return typing.cast("T", _structure_enum(value, asked))
        fits = type(value) is kind or (kind is float and type(value) is int)
        if not fits:
            raise ValueError(f"expected {expected}, got {shown(value)}")
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise ValueError(f"expected {expected} of at most 64 bits, got a larger one")
        return kind(value)  # type: ignore[call-arg]  # int, float, bool and str accept a value of their type

    return check


def _structure_path(value: object, _: type[Path]) -> Path:
    if not isinstance(value, (str, Path)):
        raise ValueError(f"expected a path, got {shown(value)}")
    return Path(value)


def _structure_items(value: object, kind: Any) -> object:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"expected a list, got {shown(value)}")
    wanted = len(_each_of(kind))
    if wanted and len(value) != wanted:
        raise ValueError(f"expected {wanted} values, got {len(value)}: {shown(value)}")
    return _origin(kind)(
        _converter().structure(one, item) for item, one in zip(_items(kind, len(value)), value, strict=True)
    )


def _structure_enum(value: object, kind: Any) -> object:
    for member in kind:
        if value is member or (type(value) is str and value == word_of(member)):
            return member
    for member in kind:
        if type(value) is type(member.value) and value == member.value:
            return member
    raise ValueError(f"expected one of {', '.join(map(word_of, kind))}, got {shown(value)}")


def _structure_literal(value: object, kind: Any) -> object:
    choices = typing.get_args(kind)
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return choice
    raise ValueError(f"expected one of {', '.join(map(str, choices))}, got {shown(value)}")


def _structure_union(value: object, kind: Any) -> object:
    members = _members(kind)
    if type(None) in members and (value is None or value == "none"):
        return None
    problems = []
    for member in members:
        if member is not type(None):
            try:
                return _converter().structure(value, member)
            except ValueError as problem:
                problems.append(str(problem))
    raise ValueError(problems[0])
