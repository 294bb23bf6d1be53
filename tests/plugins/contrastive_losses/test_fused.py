"""The fused losses without a GPU: what Triton's interpreter makes of the kernels, in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from triton_interpreter import pass_by_interpreter

triton = pytest.importorskip("triton", reason="Triton is not installed: `pip install 'clocs[fused]'`")

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
GROUPS = {
    "24 views": "24_views",
    "sizes": "sizes",
    "operator": "long or operator or compiled or memory or reach or waits or second",
}
GROUPS["values and patients"] = f"not ({' or '.join(GROUPS.values())})"
GROUPS["some sizes"] = "sizes and 37 and near"  # every loss, in seconds


@pytest.mark.parametrize(
    "group", [group if group == "some sizes" else pytest.param(group, marks=pytest.mark.slow) for group in GROUPS]
)
def test_the_kernels_agree_with_the_plain_losses_under_the_interpreter(group):
    """The same functions that a GPU compiles, so that a wrong index, mask or sign shows on any machine."""
    pass_by_interpreter(HERE / "interpreted.py", "-k", GROUPS[group])


def test_importing_the_kernels_needs_no_gpu():
    """The benchmarks and the documentation import them on any machine."""
    from clocs_plugins.contrastive_losses import fused

    assert callable(fused.contrast)
    assert torch.ops.clocs.contrast is not None
