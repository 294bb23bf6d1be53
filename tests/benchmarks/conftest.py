"""Where the paper is that the benchmarks are held against, and grids without figures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import TEST_DATA


@pytest.fixture(scope="session")
def paper_tex() -> str:
    """The TeX of the paper. Skips where it is absent."""
    path = TEST_DATA.parent / "paper" / "clocs.tex"
    if not path.is_file():
        pytest.skip("no TeX of the paper here: paper/clocs.tex is looked for beside the folder of CLOCS_TEST_DATA")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def no_figures() -> Iterator[None]:
    """Leave out the drawing of figures, which takes most of the time of a small grid, where no test looks at them."""
    from grid import drawing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "to_png", lambda figure: b"\x89PNG")
        patch.setattr(drawing, "to_svg", lambda figure, name: b"<?xml")
        yield
