"""Damage bytes as disks, networks and hands do."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Mutation = Callable[[bytes, random.Random], bytes]

_NUMBERS = rb"0 -1 1e300 -1e300 1e308 nan inf 1e-300 .001 65536 2147483648 3000000000 99999999999999999999".split()
_TEXTS = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\x1b]0;x\x07",
    b"=1+1",
    b"$\\foo$",
    b"9" * 5000,
    b"../../x",
    b"\xc3\x28",
    b'"',
    b",",
    b"\n",
)


def flip_bit(data: bytes, rng: random.Random) -> bytes:
    """Flip one bit."""
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut_short(data: bytes, rng: random.Random) -> bytes:
    """Lose the end, as an interrupted copy does."""
    return data[: rng.randrange(len(data))]


def zero_block(data: bytes, rng: random.Random) -> bytes:
    """Read a block as zeros, as a sparse file does after a crash."""
    start, size = _block(data, rng)
    return data[:start] + bytes(size) + data[start + size :]


def lose_block(data: bytes, rng: random.Random) -> bytes:
    """Lose a block in the middle."""
    start, size = _block(data, rng)
    return data[:start] + data[start + size :]


def swap_blocks(data: bytes, rng: random.Random) -> bytes:
    """Exchange two blocks of one size."""
    half = len(data) // 2
    size = rng.randint(1, max(1, half // 2))
    first, second = rng.randrange(max(1, half - size + 1)), half + rng.randrange(max(1, half - size + 1))
    a, b = data[first : first + size], data[second : second + size]
    return data[:first] + b + data[first + size : second] + a + data[second + size :]


def repeat_block(data: bytes, rng: random.Random) -> bytes:
    """Write a block twice."""
    start, size = _block(data, rng)
    return data[: start + size] + data[start:]


def random_block(data: bytes, rng: random.Random) -> bytes:
    """Overwrite a block with noise."""
    start, size = _block(data, rng)
    return data[:start] + rng.randbytes(size) + data[start + size :]


def change_number(data: bytes, rng: random.Random) -> bytes:
    """Replace a number in a text by an absurd one."""
    return _replace(data, rng, rb"-?\d+(?:\.\d+)?", _NUMBERS)


def change_word(data: bytes, rng: random.Random) -> bytes:
    """Replace a word in a text by an awkward one."""
    return _replace(data, rng, rb"[A-Za-z_]{2,}", list(_TEXTS))


def insert_word(data: bytes, rng: random.Random) -> bytes:
    """Put an awkward word or an absurd number between two bytes."""
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice((*_NUMBERS, *_TEXTS)) + data[place:]


def lose_line(data: bytes, rng: random.Random) -> bytes:
    """Remove a line of a text."""
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def empty(data: bytes, rng: random.Random) -> bytes:
    """Leave an empty file."""
    return b""


ANY: tuple[Mutation, ...] = (
    *(flip_bit,) * 4,
    *(cut_short, zero_block, lose_block, swap_blocks, repeat_block, random_block, change_number, change_word),
    *(insert_word, lose_line, empty),
)


def mutate(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Damage bytes in a drawn way. Returns them, never equal to those given, and the name of the way."""
    while True:
        way = rng.choice(ANY)
        changed = way(data, rng) if data else rng.randbytes(16)
        if changed != data:
            return changed, way.__name__


def _block(data: bytes, rng: random.Random) -> tuple[int, int]:
    size = min(len(data), rng.choice((1, 4, 16, 64, 512, 4096)))
    return rng.randrange(len(data) - size + 1), size


def _replace(data: bytes, rng: random.Random, pattern: bytes, by: list[bytes]) -> bytes:
    found = list(re.finditer(pattern, data[:100_000]))
    if not found:
        return flip_bit(data, rng)
    one = rng.choice(found)
    return data[: one.start()] + rng.choice(by) + data[one.end() :]
