"""The last layer of the encoder in training on a GPU: linear and ReLU in one kernel forward, one or two backward.

    y  = relu(x W' + b)             x (n, feature), W (dim, feature)
    g  = gradient of y where y > 0
    dx = g W,  dW = g' x,  db = the sum of g over n

A batch of 512 is too small for torch's seven kernels to fill the GPU: they take 41 µs of a step of 200. Without ReLU
the condition y > 0 is dropped. As in `block_fused`: no second derivative, the same bits every time, no host sync.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from clocs_core import can_run_triton, gpu_operator


def fused_linear(features: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    """Compute representations (n, dim) of features (n, feature) with a weight (dim, feature) and a bias (dim,)."""
    return cast(Tensor, torch.ops.clocs.linear_relu(features, weight, bias, relu))


def can_fuse_linear(features: Tensor, weight: Tensor) -> bool:
    """Return whether fused_linear supports features (n, feature) and a weight (dim, feature): float32, on a GPU."""
    return (
        features.is_cuda
        and features.dtype == weight.dtype == torch.float32
        and features.numel() > 0
        and features.numel() < 1 << 31  # the kernels index memory with 32 bits
        and can_run_triton(features.device)
    )


@gpu_operator("clocs::linear_relu")
def _linear(features: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    from clocs_plugins.cnn.linear_kernels import run_linear

    with torch.cuda.device_of(features):
        return run_linear(features.contiguous(), weight.contiguous(), bias.contiguous(), relu)


@_linear.register_fake
def _(features: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    return features.new_empty(len(features), len(weight))


@gpu_operator("clocs::linear_relu_backward")
def _linear_backward(
    gradient: Tensor, output: Tensor, features: Tensor, weight: Tensor, relu: bool
) -> tuple[Tensor, Tensor]:
    from clocs_plugins.cnn.linear_kernels import run_linear_backward

    with torch.cuda.device_of(features):
        return run_linear_backward(gradient.contiguous(), output, features.contiguous(), weight.contiguous(), relu)


@_linear_backward.register_fake
def _(gradient: Tensor, output: Tensor, features: Tensor, weight: Tensor, relu: bool) -> tuple[Tensor, Tensor]:
    return features.new_empty(features.shape), weight.new_empty(weight.numel() + len(weight))


_linear_backward.refuse_gradient()


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    features, weight, _, ctx.relu = inputs
    ctx.save_for_backward(output, features, weight)


def _differentiate(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    output, features, weight = ctx.saved_tensors
    of_features, rest = torch.ops.clocs.linear_relu_backward(gradient, output, features, weight, ctx.relu)
    of_weight, of_bias = rest.split((weight.numel(), len(weight)))
    return of_features, of_weight.view(weight.shape), of_bias, None


_linear.register_autograd(_differentiate, setup_context=_keep)
