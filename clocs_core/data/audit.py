"""Check that no test patient is in another part: compare patients by id, and signals by correlation.

Two recordings of one patient under two names, or one recording published twice, leak from training into the test
without any shared id. Every frame is therefore compared with every frame of the other parts: first by a sketch of 64
points, tile by tile, then, where the sketches agree, by all its samples. A GPU compares the sketches if there is one.
It only proposes pairs: each is confirmed in float64 on the CPU, so that every device finds the same copies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.documents import as_plain, is_sealed, seal
from clocs_core.artifacts.split import PARTS, Split
from clocs_core.data.prepared import Prepared
from clocs_core.files import sweep, write_atomically

if TYPE_CHECKING:
    import torch

SKETCH = 64  # points of a sketch: for 10 s, enough to locate every beat
LIKE = 0.98  # cosine of two sketches above which all samples are compared
SAME = 0.9995  # correlation of all samples above which two frames are copies of each other
TILE = 4096  # frames compared at a time: 64 MB of cosines
_ROUNDING = 1e-4  # of a cosine in float32, and far more

Pairs: TypeAlias = NDArray[np.int64]
"""(pair, 2): the frames of each."""


@attrs.frozen
class Twin:
    """Two recordings in different parts that have a stretch of signal in common."""

    record: str
    part: str
    other: str
    other_part: str
    correlation: float


@attrs.frozen
class Audit:
    """The result: `frames` is the number compared; `twins` has each pair of recordings once, most alike first."""

    shared_patients: int
    frames: int
    twins: tuple[Twin, ...]

    def sentence(self) -> str:
        """Return the result as one line for a console."""
        return (
            f"{self.shared_patients} patients shared, {len(self.twins)} duplicate signals "
            f"between training, validation and test ({self.frames:,} frames compared)"
        )


def audit(prepared: Prepared, split: Split, device: torch.device | None = None) -> Audit:
    """Compare the parts of a split by patient and by signal, on the first channel that is valid in each frame.

    device: where sketches are compared; default: the CPU.
    """
    names: dict[str, set[str]] = {part: set(split.patients(part)) for part in PARTS}
    shared = sum(len(names[a] & names[b]) for i, a in enumerate(PARTS) for b in PARTS[i + 1 :])
    part_of_record = np.array([PARTS.index(split.parts[patient]) for _, patient in prepared.records], dtype=np.int8)
    usable = np.flatnonzero(prepared.valid.any(axis=1))
    channel = prepared.valid[usable].argmax(axis=1)
    sketches = _sketches(prepared, usable, channel)
    part = part_of_record[prepared.record[usable]]
    best: dict[tuple[int, int], float] = {}
    for i, k in _alike(sketches, part, device):
        if channel[i] != channel[k]:
            continue
        found = _correlation(prepared, usable[i], usable[k], channel[i])
        pair = (int(prepared.record[usable[i]]), int(prepared.record[usable[k]]))
        if found >= SAME:
            best[pair] = max(found, best.get(pair, -1.0))
    prepared.let_go()  # sketches read all of it
    twins = [
        Twin(prepared.records[a][0], PARTS[part_of_record[a]], prepared.records[b][0], PARTS[part_of_record[b]], value)
        for (a, b), value in sorted(best.items(), key=lambda item: -item[1])
    ]
    return Audit(shared, len(usable), tuple(twins))


def certified_audit(prepared: Prepared, split: Split, device: torch.device | None = None) -> Audit:
    """Read the audit of a split from the certificate beside the frames, or make it and save it there.

    device: as in `audit`.
    """
    kept = prepared.folder / f"certificate-{split.hash[:16]}.json"
    with suppress(OSError):  # the data root is read-only
        sweep(kept.parent)  # a killed process may have been writing it; another may have finished it since
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        held = json.loads(kept.read_text(encoding="utf-8"))
        if is_sealed(held) and held["split"] == split.hash:  # an audit is not taken from a damaged file
            twins = tuple(Twin(**twin) for twin in held["twins"])
            return Audit(held["shared_patients"], held["frames"], twins)
    found = audit(prepared, split, device)
    held = as_plain({"split": split.hash, "patients": split.counts(), **attrs.asdict(found)})
    with suppress(OSError):  # the audit is made again next time
        write_atomically(kept, json.dumps(seal(held), indent=1) + "\n")
    return found


def _sketches(prepared: Prepared, usable: NDArray[np.int64], channel: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return unit vectors (frame, 64): means of 64 equal stretches, centred. Frames are read in pieces from disk."""
    samples = prepared.frames.shape[2]
    points = min(SKETCH, samples)
    edges = np.linspace(0, samples, points + 1).astype(int)
    sketches = np.empty((len(usable), points), dtype=np.float32)
    for first in range(0, len(usable), TILE):
        rows = slice(first, first + TILE)
        piece = prepared.frames[usable[rows], channel[rows]]  # (frame, sample)
        # In float32, the squares of a copy that is scaled by 1e30 or 1e-25 are infinite or zero.
        means = np.add.reduceat(piece, edges[:-1], axis=1, dtype=np.float64) / np.diff(edges)
        means -= means.mean(axis=1, keepdims=True)
        norm = np.linalg.norm(means, axis=1, keepdims=True)
        norm[norm == 0] = 1.0  # a frame whose stretches have equal means matches no other
        sketches[rows] = means / norm
    return sketches


def _alike(
    sketches: NDArray[np.float32], part: NDArray[np.int8], device: torch.device | None
) -> Iterator[tuple[int, int]]:
    """Yield pairs (i < k) of frames in different parts whose sketches agree."""
    propose = partial(_propose, sketches, part)
    if device is not None and device.type != "cpu":
        propose = proposing_on(device, sketches, part)
    for i in range(0, len(sketches), TILE):
        for k in range(i, len(sketches), TILE):
            pairs = propose(i, k)
            pairs = pairs[pairs[:, 0] < pairs[:, 1]]
            a, b = (sketches[side].astype(np.float64) for side in pairs.T)
            yield from map(tuple, pairs[(a * b).sum(axis=1) > LIKE].tolist())


def _propose(sketches: NDArray[np.float32], part: NDArray[np.int8], i: int, k: int) -> Pairs:
    """Return pairs of a frame from `i` on and one from `k` on, in different parts, whose sketches may agree."""
    near = sketches[i : i + TILE] @ sketches[k : k + TILE].T > LIKE - _ROUNDING
    near &= part[i : i + TILE, None] != part[None, k : k + TILE]
    return np.argwhere(near) + np.array([i, k])


def proposing_on(
    device: torch.device, sketches: NDArray[np.float32], part: NDArray[np.int8]
) -> Callable[[int, int], Pairs]:
    """Return `_propose` of these sketches on a device; on the CPU where its memory does not suffice."""
    import torch  # only here: recordings are prepared without it

    from clocs_core.data.memory import within_memory

    held: dict[torch.device, tuple[torch.Tensor, torch.Tensor]] = {}

    def propose(where: torch.device, i: int, k: int) -> Pairs:
        if where not in held:
            held[where] = torch.from_numpy(sketches).to(where), torch.from_numpy(part).to(where)
        points, parts = held[where]
        near = points[i : i + TILE] @ points[k : k + TILE].T > LIKE - _ROUNDING
        near &= parts[i : i + TILE, None] != parts[None, k : k + TILE]
        found: Pairs = near.nonzero().cpu().numpy() + np.array([i, k])  # sync point
        return found

    return lambda i, k: within_memory(lambda where, share: propose(where, i, k), device)


def _correlation(prepared: Prepared, a: np.int64, b: np.int64, channel: np.int64) -> float:
    x, y = (prepared.frames[frame, channel].astype(np.float64) for frame in (a, b))
    x, y = x - x.mean(), y - y.mean()
    size = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / size if size else 0.0
