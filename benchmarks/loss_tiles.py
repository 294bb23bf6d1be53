"""Find the fastest tiles of the kernels of patient-NCE on the GPU at hand. The table to change is shapes.py."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import torch
from captured_step import capture
from loss_steps import GRAPHS_UP_TO, TAU, Row, Size, batch_of
from step_clock import clock
from torch import Tensor

from clocs_plugins.contrastive_losses.shapes import Shapes, Tile, choose_shapes, is_roomy

SUMS = [
    Tile(*one)
    for one in ((64, 32, 4, 3), (64, 64, 4, 3), (64, 128, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (128, 64, 4, 3))
]
GRADIENT = [
    Tile(*one)
    for one in (
        (16, 64, 2, 3),
        (16, 128, 4, 3),
        (64, 32, 4, 3),
        (64, 64, 4, 3),
        (64, 64, 4, 4),
        (64, 128, 4, 2),
        (64, 128, 4, 3),
        (128, 64, 8, 3),
        (128, 128, 8, 2),
    )
]
PARTS = (1, 2, 4, 8)


def table_of(size: Size, device: torch.device) -> Shapes:
    """Look up the tiles that the table has for a size, in float16."""
    batch, dim, views = size
    roomy = is_roomy(device.type, device.index or 0)
    return choose_shapes(batch, dim, views, two=False, alone=False, roomy=roomy)


def tried(size: Size, device: torch.device) -> list[Shapes]:
    """List the tiles of the table, then every other tile of either kernel."""
    table = table_of(size, device)
    parts = [one for one in PARTS if size[0] <= GRAPHS_UP_TO or one == 1]
    return [
        table,
        *(Shapes(one, table.gradient, table.parts) for one in SUMS),
        *(Shapes(table.sums, one, many) for one in GRADIENT for many in parts),
    ]


def sweep(size: Size, device: torch.device) -> Row:
    """Time the forward pass by the tile of its sums, and the backward pass by tile and parts."""
    z, patient = batch_of(size, device)
    forward: dict[str, float] = {}
    backward: dict[str, float] = {}
    for shapes in tried(size, device):
        steps = passes(z, patient, shapes)
        for step, times, key in zip(
            steps, (forward, backward), (as_key(shapes.sums), as_key(shapes.gradient, shapes.parts)), strict=True
        ):
            if key in times:
                continue
            try:
                ready = capture(step) if z.is_cuda and size[0] <= GRAPHS_UP_TO else step
                times[key] = clock(ready, z.is_cuda)["median_ms"]
            except Exception as problem:  # a tile that a GPU cannot hold fails in several ways
                print(f"{size} {key}: {type(problem).__name__}: {problem}")
    ranked = [dict(sorted(times.items(), key=lambda one: one[1])) for times in (forward, backward)]
    return {
        "size": list(size),
        "table": table_of(size, device).as_numbers(),
        "forward_ms": ranked[0],
        "backward_ms": ranked[1],
    }


def passes(z: Tensor, patient: Tensor, shapes: Shapes) -> tuple[Callable[[], object], Callable[[], object]]:
    """Make the forward and the backward operator as steps of their own."""
    importlib.import_module("clocs_plugins.contrastive_losses.fused")  # where they are made
    z, numbers, outer = z.detach(), shapes.as_numbers(), torch.ones((), device=z.device)
    share = 2 / (len(z) * (len(z) - 1))

    def forward() -> list[Tensor]:
        return list(torch.ops.clocs.contrast(z, patient, None, TAU, 0, share, False, numbers))

    held: list[list[Tensor]] = []

    def backward() -> object:
        if not held:
            held.append(forward()[1:])
        return torch.ops.clocs.contrast_backward(outer, z, None, *held[0], TAU, 0, False, numbers, False)

    return forward, backward


def as_key(tile: Tile, parts: int | None = None) -> str:
    """Name a tile for a table."""
    name = f"{tile.rows}x{tile.columns} {tile.warps} warps {tile.stages} stages"
    return name if parts is None else f"{name} {parts} parts"
