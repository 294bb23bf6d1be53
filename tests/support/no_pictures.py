"""Leave out the drawing of pictures, which is most of the time of a small run, where no test looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

import pytest


@contextmanager
def without_pictures() -> Iterator[None]:
    """Make every picture one white pixel; its name, title and caption stay."""
    from PIL import Image

    from clocs_core.report import sheet

    pixel = BytesIO()
    Image.new("L", (1, 1), 255).save(pixel, format="png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sheet, "to_png", lambda figure, colours=128: pixel.getvalue())
        yield
