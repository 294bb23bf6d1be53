"""Write records as JSON and read them back exactly: floats bit for bit, NaN as null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import attrs
import cattrs

from clocs_core.errors import RunFolderError

SCHEMA = 1  # raise it when a field changes its meaning, so that an old reader refuses instead of misreading

DIGEST = "digest"  # the field that a written document has more than its record

T = TypeVar("T")


def as_plain(value: object) -> Any:
    """Convert a value for JSON: tuples to lists, NumPy's numbers to Python's, NaN to null."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if math.isfinite(number):
            return number
        return None if math.isnan(number) else str(number)  # "inf" reads back as a float where one is expected
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(item) for item in value]
    return str(value)  # a path, as a user would type it


def dump_record(record: Any) -> str:
    """Write a record with its schema, such as a report, as text; `load_record` reads it back bit for bit."""
    return _write(seal(as_plain(attrs.asdict(record))))


def print_record(record: Any) -> str:
    """Write a record for another program that reads standard output: as `dump_record`, without a digest."""
    return _write(as_plain(attrs.asdict(record)))


def _write(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def seal(document: dict[str, Any]) -> dict[str, Any]:
    """Add a digest of all values, so that a number which changed on the disk is noticed."""
    return {**document, DIGEST: _digest(document)}


def is_sealed(document: object) -> bool:
    """Tell whether a document has a digest, and is what was sealed."""
    return isinstance(document, dict) and document == seal({k: v for k, v in document.items() if k != DIGEST})


def structure_sealed(document: dict[str, Any], kind: type[T], what: str) -> T:
    """Make a record from what `seal` returned. Raises RunFolderError, naming `what`, where a value is another one.

    Documents of earlier versions have no digest, and pass.
    """
    rest = {key: value for key, value in document.items() if key != DIGEST}
    record = structure_record(rest, kind, what)  # a field that does not fit is named
    if DIGEST in document and document[DIGEST] != _digest(rest):
        raise RunFolderError(f"{what} is damaged, or was edited: its values do not match its digest.")
    return record


def _digest(document: dict[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]


def read_text(path: Path) -> str:
    """Read a text file of ours. Raises RunFolderError where it cannot be read, or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise RunFolderError(f"Cannot read {path}: {problem.strerror or problem}.") from None
    except UnicodeDecodeError as problem:
        raise RunFolderError(f"{path} is damaged: it is not text in UTF-8 ({problem}).") from None


def load_record(text: str, kind: type[T], what: str) -> T:
    """Read what `dump_record` wrote; raises RunFolderError, naming `what`, for another schema or a damaged file."""
    document = read_object(text, what)
    if document.get("schema") != SCHEMA:
        raise RunFolderError(
            f"{what} has schema {document.get('schema')!r}, this version of clocs reads {SCHEMA}; evaluate the "
            "run again with this version, or read it with the version that wrote it"
        )
    return structure_sealed(document, kind, what)


def read_object(text: str, what: str) -> dict[str, Any]:
    """Read a JSON object. Raises RunFolderError, naming `what`, for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunFolderError(f"{what} is not JSON ({error}); it was cut short or edited: {text[:60]!r}") from error
    if not isinstance(found, dict):
        raise RunFolderError(f"{what} holds {type(found).__name__}, expected an object: {text[:60]!r}")
    return found


def structure_record(found: object, kind: type[T], what: str) -> T:
    """Make a record from a JSON object. Raises RunFolderError, naming `what`, where a field does not fit."""
    try:
        if not isinstance(found, dict):
            raise RunFolderError(f"{what} is {found!r:.60}, expected an object")
        return _converter().structure(found, kind)
    except cattrs.BaseValidationError as error:
        faults = "; ".join(cattrs.transform_error(error, format_exception=_fault))
        raise RunFolderError(f"{what} does not hold what it should: {faults}") from error


def _fault(problem: BaseException, kind: type[Any] | None) -> str:
    """Say what is wrong with a value; the hooks below say it best themselves."""
    said = str(problem)
    return said if said.startswith("expected ") else cattrs.v.format_exception(problem, kind)


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook_func(_is_tuple, _tuple)
    for exact in (int, str, bool):
        converter.register_structure_hook(exact, _only)
    return converter


def _number(value: object, _: type[float]) -> float:
    """Read a number; null is NaN, and "inf" infinity."""
    if value is None:
        return math.nan
    if type(value) not in (int, float) and value not in ("inf", "-inf"):
        raise TypeError(f"expected a number, got {value!r}")
    return float(value)  # type: ignore[arg-type]  # one of the four


def _is_tuple(kind: Any) -> bool:
    origin: object = get_origin(kind)
    return origin is tuple


def _tuple(value: object, kind: Any) -> tuple[Any, ...]:
    """Read a list. Text would become a tuple of its letters."""
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {value!r}")
    return tuple(_converter().structure(item, get_args(kind)[0]) for item in value)


def _only(value: object, kind: type[T]) -> T:
    """Refuse values that cattrs would convert silently, such as null to "None" or 1.5 to 1."""
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value
