"""Where the paper is that the benchmarks are held against, and grids without figures."""

from __future__ import annotations

import pytest
from conftest import TEST_DATA


@pytest.fixture(scope="session")
def paper_tex() -> str:
    """The TeX of the paper. Skips where it is absent."""
    path = TEST_DATA.parent / "paper" / "clocs.tex"
    if not path.is_file():
        pytest.skip("no TeX of the paper here: paper/clocs.tex is looked for beside the folder of CLOCS_TEST_DATA")
    return path.read_text(encoding="utf-8")
