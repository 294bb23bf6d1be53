"""The cross-entropy of positions ahead, plainly against loops, and by kernels against the plain one.

The kernels run on a GPU, and by Triton's interpreter in a process of its own.
"""

from __future__ import annotations

import math
import os

import pytest
import torch
from triton_interpreter import pass_by_interpreter

from clocs_plugins.cpc.entropy import ByKernels, position_entropies

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


@pytest.fixture(params=["cpu"] if INTERPRETED else [pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    pytest.importorskip("triton", reason="Triton is not installed: `pip install 'clocs[fused]'`")
    return torch.device(request.param)


def draw(*shape, dtype=torch.float32):
    return (3 * torch.randn(*shape, generator=torch.Generator().manual_seed(0))).to(dtype)


def test_a_position_has_the_target_that_many_positions_later():
    """Written in loops; targets of padding count for nothing."""
    scores = draw(2, 5, 3, 8, dtype=torch.float64)
    found = position_entropies(scores)
    assert found.shape == (2, 5, 3)
    for n in range(2):
        for t in range(5):
            for k in range(1, 4):
                row = scores[n, t, k - 1, :5].tolist()
                expected = math.log(sum(map(math.exp, row))) - row[t + k] if t + k < 5 else 0.0
                assert found[n, t, k - 1].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("count", "time", "ahead", "targets"), [(1, 2, 1, 2), (3, 13, 4, 16), (2, 64, 3, 64), (2, 130, 12, 136)]
)
def test_kernels_agree_with_the_plain_version(count, time, ahead, targets, dtype, device):
    """Losses and gradients, with padding or without, in rows that fill programs and rows that do not."""
    scores, upstream = draw(count, time, ahead, targets, dtype=dtype), draw(count, time, ahead)
    ours, exact = scores.clone().to(device).requires_grad_(), scores.double().requires_grad_()
    found, plain = ByKernels.apply(ours), position_entropies(exact)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.detach().double().cpu(), plain.detach(), rtol=1e-5, atol=1e-5)
    found.backward(upstream.to(device))
    plain.backward(upstream.double())
    assert (ours.grad.dtype, ours.grad.shape) == (dtype, scores.shape)
    close = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(ours.grad.double().cpu(), exact.grad, rtol=close, atol=close)


def test_large_scores_do_not_overflow(device):
    scores = torch.full((1, 4, 1, 8), 200.0, device=device)
    scores[..., 0] = -200.0
    found = ByKernels.apply(scores)
    torch.testing.assert_close(found.cpu(), position_entropies(scores.double().cpu()).float())


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter")
def test_all_of_this_holds_by_the_interpreter():
    """On a machine without a GPU."""
    pass_by_interpreter(__file__)
