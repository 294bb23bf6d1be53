"""Damage files as disks, transfers and editors do: a flipped bit, a lost end, a wrong block, a value of another type.

The fault campaign has the ways to damage bytes; here are those that know what a file of ours holds. `damaged_copies`
makes many copies, the same ones for the same seed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import tomli_w
from faults.mutations import Mutation, cut_short, flip_bit, swap_blocks, zero_block

OTHER_VALUES: tuple[Any, ...] = (-1, 0, 10**6, 10**30, 0.5, 1e300, True, "", "other", "$\\foo$", [], [1], {}, {"a": 1})
"""Values to put in the place of others. JSON has null as well; TOML lacks it."""


def retype_json(data: bytes, chance: Random) -> bytes:
    """Put a value of another type in the place of one value of a JSON document."""
    return json.dumps(retyped(json.loads(data), chance, (*OTHER_VALUES, None))).encode()


def retype_jsonl(data: bytes, chance: Random) -> bytes:
    """Put a value of another type in the place of one value in one line of JSON."""
    lines = data.splitlines(keepends=True)
    place = chance.randrange(len(lines))
    lines[place] = retype_json(lines[place], chance) + b"\n"
    return b"".join(lines)


def retype_toml(data: bytes, chance: Random) -> bytes:
    """Put a value of another type in the place of one value of a TOML document."""
    return tomli_w.dumps(retyped(tomllib.loads(data.decode()), chance, OTHER_VALUES)).encode()


def retype_metadata(data: bytes, chance: Random) -> bytes:
    """Put a value of another type into the description in the header of a safetensors file."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    description = json.loads(header["__metadata__"]["clocs"])
    header["__metadata__"]["clocs"] = json.dumps(retyped(description, chance, (*OTHER_VALUES, None)))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


RETYPE: dict[str, Mutation] = {
    ".json": retype_json,
    ".jsonl": retype_jsonl,
    ".toml": retype_toml,
    ".safetensors": retype_metadata,
}
"""How values are exchanged, by the ending of a file. Other files have no values to exchange."""


def damaged_copies(data: bytes, ending: str, count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield `count` damaged copies of a file, each with the name of its damage. All of them differ from the file."""
    ways: list[Mutation] = [flip_bit, cut_short, zero_block, swap_blocks]
    ways += [RETYPE[ending]] if ending in RETYPE else []
    chance, made = Random(seed), 0
    while made < count:
        way = ways[made % len(ways)]
        copy = way(data, chance)
        if copy != data:
            yield f"{way.__name__} {made}", copy
            made += 1


def retyped(document: Any, chance: Random, values: tuple[Any, ...]) -> Any:
    """Return a copy of a document with one value, drawn from all of them, exchanged for one of another type."""
    path = chance.choice(list(_paths(document)))
    return with_value(document, path, lambda old: chance.choice([new for new in values if type(new) is not type(old)]))


def with_value(document: Any, path: tuple[str | int, ...], change: Callable[[Any], Any]) -> Any:
    """Return a copy of a document in which the value at `path` is changed."""
    if not path:
        return change(document)
    copy: Any = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = with_value(copy[path[0]], path[1:], change)
    return copy


def _paths(document: Any) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every value, tables and lists included, but not the document itself."""
    inner: Any = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in inner:
        yield (key,)
        if isinstance(value, (dict, list)):
            yield from ((key, *rest) for rest in _paths(value))
