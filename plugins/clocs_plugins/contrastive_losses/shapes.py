"""Choose the tiles of the kernels from a measured table, so that no run has to tune them.

`python benchmarks/patient_nce.py --sweep` measures the candidate tiles on the GPU at hand.
"""

from __future__ import annotations

import math
from functools import lru_cache

import attrs
import torch

MOST_DIMS = 512
"""Most dimensions of an embedding; longer ones leave no registers for a tile of gradients."""
PROGRAMS = 224
"""Programs wanted: one or two per multiprocessor of an H200. Fewer blocks of rows are computed in parts."""
MOST_PARTS, MOST_PARTS_OF_SOME = 4, 16
"""Most parts of the sums of a block of rows: where all rows are computed, and where a process has few of them."""


@attrs.frozen
class Tile:
    """The tile of a kernel: rows and columns of the K x K matrix, warps of a program, tiles in flight."""

    rows: int
    columns: int
    warps: int
    stages: int


@attrs.frozen
class Shapes:
    """The tiles of both passes, and the number of parts of the gradient of a block of rows."""

    sums: Tile
    gradient: Tile
    parts: int = 1

    def as_numbers(self) -> list[int]:
        """Return the numbers that the operator takes."""
        return [*attrs.astuple(self.sums), *attrs.astuple(self.gradient), self.parts]

    @staticmethod
    def from_numbers(numbers: list[int]) -> Shapes:
        """Build the shapes from such numbers."""
        return Shapes(Tile(*numbers[:4]), Tile(*numbers[4:8]), numbers[8])

    def padded_rows(self, batch: int, *, some: bool = False) -> int:
        """Return the rows of the packed embeddings: a multiple of every tile.

        some: programs compute some of the rows, so that their tiles may begin anywhere and end behind the last row.
        """
        largest = max(self.sums.rows, self.sums.columns, self.gradient.rows, self.gradient.columns)
        return math.ceil(batch / largest + some) * largest


def padded(dim: int) -> int:
    """Return the columns of the packed embeddings: a power of two, at least 16 for the tensor cores."""
    return max(16, power_of_two(dim))


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is not below a positive number."""
    return 1 << (number - 1).bit_length()


@lru_cache(maxsize=64)  # a step calls it twice, on the host, before its launches
def choose_shapes(
    batch: int, dim: int, views: int, *, two: bool, alone: bool, roomy: bool, own: int | None = None
) -> Shapes:
    """Choose the tiles for one size.

    own: rows that are computed, all by default. two: float16 in two halves. alone: views are compared with themselves
    too, as in NT-Xent. roomy: a program can have 227 KB of shared memory, as on Hopper and on Blackwell for data
    centres, instead of 99.
    """
    if not roomy:
        sums, gradient = _TIGHT[two][_step(dim)]
    elif two:
        sums, gradient = _IN_HALVES[_step(dim)]
    elif padded(dim) > 128:
        sums, gradient = _LONG[_step(dim)]
    else:
        sums, gradient = _by_batch(batch, views)
    if alone:  # checking for i = j takes registers
        sums = attrs.evolve(sums, columns=min(sums.columns, 64))
    return Shapes(sums, gradient, _parts(batch, batch if own is None else own, views, gradient))


def is_roomy(kind: str, device: int | None) -> bool:
    """Return whether a program can have 227 KB of shared memory: Hopper, and Blackwell in data centres."""
    return kind == "cuda" and torch.cuda.get_device_capability(device)[0] in (9, 10)


def _by_batch(batch: int, views: int) -> tuple[Tile, Tile]:
    """Choose tiles for up to 128 dimensions in float16: small batches need many programs, large ones large tiles."""
    if batch <= 512:
        return (
            (Tile(128, 32, 4, 3), _FEW_ROWS)
            if views == 2
            else (Tile(64, 32 if views <= 4 else 64, 4, 3), Tile(64, 64, 4, 3))
        )
    if batch <= 8192:
        return (Tile(128, 64, 8, 3), Tile(64, 128, 4, 3)) if views == 2 else (Tile(64, 64, 4, 3), Tile(64, 128, 4, 2))
    return Tile(64, 128, 4, 3), Tile(64, 64, 4, 3)


def _parts(batch: int, own: int, views: int, tile: Tile) -> int:
    if tile == _FEW_ROWS:
        return 1
    programs = max(1, math.ceil(own / tile.rows)) * views
    tiles = math.ceil(batch / tile.columns) * (views - 1)
    return max(1, min(PROGRAMS // programs, MOST_PARTS if own == batch else MOST_PARTS_OF_SOME, tiles))


def _step(dim: int) -> int:
    return max(128, padded(dim))


_FEW_ROWS = Tile(16, 128, 4, 3)
"""One program has all tiles of these rows and computes their gradient too, which saves a launch in small batches."""
_LONG = {
    256: (Tile(64, 128, 4, 3), Tile(128, 64, 8, 3)),
    512: (Tile(64, 64, 4, 2), Tile(64, 32, 8, 2)),
}
_IN_HALVES = {
    128: (Tile(64, 64, 4, 3), Tile(64, 64, 4, 2)),
    256: (Tile(64, 64, 4, 2), Tile(32, 32, 8, 2)),
    512: (Tile(64, 32, 4, 1), Tile(16, 32, 8, 2)),  # the first spills some registers, as every other tile does
}
_TIGHT = {
    False: {
        128: (Tile(64, 64, 8, 2), Tile(64, 64, 4, 2)),
        256: (Tile(64, 64, 8, 2), Tile(64, 64, 8, 2)),
        512: (Tile(32, 32, 8, 2), Tile(32, 32, 8, 2)),
    },
    True: {
        128: (Tile(32, 64, 4, 2), Tile(32, 64, 4, 2)),
        256: (Tile(16, 32, 4, 2), Tile(32, 32, 8, 2)),
        512: (Tile(16, 32, 8, 2), Tile(16, 32, 8, 2)),
    },
}
