"""Leave out the drawing of pictures, which is most of the time of a small run, where no test looks at them."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from io import BytesIO
from types import ModuleType
from typing import Any

import pytest


class Blank:
    """Stands in for axes: whatever is drawn on them, nothing happens."""

    def __getattr__(self, name: str) -> Blank:
        return self

    def __call__(self, *_: object, **__: object) -> Blank:
        return self

    def __getitem__(self, key: object) -> Blank:
        return self


def blank_sheet(rows: int, columns: int, width: float, height: float) -> tuple[Blank, list[Blank]]:
    """Make a sheet as `sheet.sheet` does."""
    return Blank(), [Blank()] * (rows * columns)


@contextmanager
def without_pictures() -> Iterator[None]:
    """Make every picture one white pixel; its name, title and caption stay."""
    from clocs_core.report import paper, sheet

    stand_ins: dict[str, Any] = {"sheet": blank_sheet, "to_png": lambda figure, colours=128: _pixel()}
    stand_ins |= dict.fromkeys(("set_margins", "line", "label", "legend", "legend_beside"), lambda *_, **__: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "draw_paper", lambda *_: Blank())
        for name, stand_in in stand_ins.items():
            real = getattr(sheet, name)
            for module in _drawing_modules():
                if getattr(module, name, None) is real:
                    patch.setattr(module, name, stand_in)
        yield


@cache
def _drawing_modules() -> list[ModuleType]:
    """Import all modules of reports and grids: one that is imported later would keep a stand-in for ever."""
    from clocs_core import grids, report

    names = [f"{of.__name__}.{one.name}" for of in (report, grids) for one in pkgutil.iter_modules(of.__path__)]
    return [import_module(name) for name in names]


@cache
def _pixel() -> bytes:
    from PIL import Image

    pixel = BytesIO()
    Image.new("L", (1, 1), 255).save(pixel, format="png")
    return pixel.getvalue()
