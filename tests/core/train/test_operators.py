"""Operators with their own kernels: values, gradients, torch's rules, and no import of torch's compiler."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from clocs_core.train.operators import gpu_operator

DECLARE = """
import sys, torch
from clocs_core import gpu_operator

@gpu_operator("clocs_tests_alone::twice", "(Tensor x) -> Tensor")
def twice(x):
    return 2 * x

twice.register_autograd(lambda ctx, outer: 2 * outer, setup_context=lambda ctx, inputs, output: None)
x = torch.ones(3, requires_grad=True)
twice(x).sum().backward()
assert x.grad.tolist() == [2, 2, 2]
sys.exit(1 if "torch._dynamo" in sys.modules else 0)
"""


@pytest.fixture(scope="module")
def scaled():
    """An operator of a tensor and a number, with its gradient."""

    @gpu_operator("clocs_tests::scaled")
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    scaled.register_fake(lambda x, by: torch.empty_like(x))

    def remember(ctx, inputs, output):
        _, ctx.by = inputs

    scaled.register_autograd(lambda ctx, outer: (outer * ctx.by, None), setup_context=remember)
    return scaled


def test_values_and_gradients_are_those_of_the_functions(scaled):
    x = torch.arange(3.0, requires_grad=True)
    made = scaled(x, 3.0)
    made.sum().backward()
    assert made.tolist() == [0, 3, 6]
    assert x.grad.tolist() == [3, 3, 3]


def test_it_keeps_torchs_rules(scaled):
    torch.library.opcheck(torch.ops.clocs_tests.scaled.default, (torch.ones(3, requires_grad=True), 2.0))


def test_a_call_imports_no_compiler():
    """It would take 2 s of every run; torch.library.custom_op imports it."""
    assert subprocess.run([sys.executable, "-c", DECLARE], check=False).returncode == 0


def test_an_operator_without_a_gradient_says_so():
    @gpu_operator("clocs_tests::sign", "(Tensor x) -> Tensor")
    def sign(x):
        return x.sign()

    sign.refuse_gradient()
    with pytest.raises(RuntimeError, match="clocs_tests::sign has no gradient"):
        sign(torch.ones(2, requires_grad=True)).sum().backward()
