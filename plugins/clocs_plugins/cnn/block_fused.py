"""The blocks of the encoder on a GPU: in training nine Triton kernels instead of some sixty of torch.

`fused_blocks` computes nn.Conv1d, nn.BatchNorm1d, nn.ReLU, nn.MaxPool1d(2) and nn.Dropout, block after block, and
updates the running statistics; formulas: fused_forward.py and fused_gradients.py. Differences from torch's modules:

- products are computed on tensor cores: forward in six parts of bfloat16 (within 1e-6 of the exact ones), backward in
  three (within 1e-5)
- dropout draws 16 bits for each feature, so the share is rounded to a multiple of 1/65536
- the gradient of a convolution's bias is zero, as in theory before BatchNorm, and not rounding noise
- there is no second derivative

There is no host sync and no shape depends on data, so a step can be captured in a CUDA graph. Every sum has a fixed
order, so the same input gives the same bits.

`evaluated_blocks` computes them in evaluation by the four kernels of the forward pass. torch's own convolutions are in
TF32 there, which is within 1e-3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from clocs_core import can_run_triton, gpu_operator
from clocs_plugins.cnn import fused_geometry as geometry
from clocs_plugins.cnn.dropout_bits import draw_noise, in_levels
from clocs_plugins.cnn.fused_geometry import Parameters


class Layer(NamedTuple):
    """The parameters and buffers of one block: those of nn.Conv1d and nn.BatchNorm1d. Statistics change in place."""

    weight: Tensor  # (after, before, kernel)
    bias: Tensor  # (after,), like all below except the last
    gamma: Tensor
    beta: Tensor
    running_mean: Tensor
    running_var: Tensor
    batches: Tensor  # (): number of batches in the running statistics


def layer_of(conv: nn.Conv1d, norm: nn.BatchNorm1d) -> Layer:
    """Return the layer of a convolution with a bias and a norm with running statistics."""
    buffers = (norm.running_mean, norm.running_var, norm.num_batches_tracked)
    assert conv.bias is not None
    assert all(buffer is not None for buffer in buffers)
    return Layer(conv.weight, conv.bias, norm.weight, norm.bias, *cast(tuple[Tensor, Tensor, Tensor], buffers))


def fused_blocks(
    signal: Tensor,
    layers: Sequence[Layer],
    *,
    stride: int,
    dropout: float,
    momentum: float = 0.1,
    eps: float = 1e-5,
    noise: Tensor | None = None,
) -> Tensor:
    """Compute features (n, channel, sample) of signals (n, channel, sample) in training; update running statistics.

    noise: int16 random bits from `draw_noise`; drawn here if None.
    Raise ValueError if BatchNorm has a single value for a channel, as nn.BatchNorm1d does.
    """
    fold_first = signal.requires_grad and torch.is_grad_enabled()
    plan = geometry.make_plan(signal, [layer.weight for layer in layers], stride, fold_first)
    if min(block.signals * block.positions for block in plan.blocks) < 2 or plan.blocks[-1].pooled < 1:
        raise ValueError(
            f"BatchNorm needs more than one value for each channel and pooling two positions, got signals of shape "
            f"{tuple(signal.shape)}. Use a larger batch or longer frames."
        )
    if noise is None:
        noise = draw_noise(plan.noise_size if dropout else 0, signal.device)
    weights, biases, gammas, betas = ([layer[field] for layer in layers] for field in range(4))
    output, statistics, _ = torch.ops.clocs.conv_blocks(
        signal, weights, biases, gammas, betas, noise, stride, dropout, eps, fold_first
    )
    _update(layers, statistics, plan.statistics_at, momentum)
    return cast(Tensor, output)


def evaluated_blocks(signal: Tensor, layers: Sequence[Layer], *, stride: int, eps: float = 1e-5) -> Tensor:
    """Compute features (n, channel, sample) of signals (n, channel, sample) in evaluation, without gradients."""
    one = signal.new_ones(1)
    means = torch._foreach_sub([layer.running_mean for layer in layers], [layer.bias for layer in layers])
    moments = [(mean, layer.running_var, one) for mean, layer in zip(means, layers, strict=True)]
    flat = torch.cat([piece for three in moments for piece in three])  # one launch for all blocks
    weights, gammas, betas = ([layer[field] for layer in layers] for field in (0, 2, 3))
    return cast(Tensor, torch.ops.clocs.conv_blocks_evaluated(signal, weights, gammas, betas, flat, stride, eps))


def can_fuse(signal: Tensor, weights: Sequence[Tensor], stride: int) -> bool:
    """Return whether fused_blocks supports signals (n, channel, sample) and filters: float32, on a GPU, not large."""
    if not signal.is_cuda or any(one.dtype != torch.float32 for one in (signal, *weights)):
        return False
    if not can_run_triton(signal.device):
        return False
    return all(geometry.fits(block) for block in geometry.make_plan(signal, weights, stride, False).blocks)


@torch.no_grad()
def _update(layers: Sequence[Layer], statistics: Tensor, starts: Sequence[int], momentum: float) -> None:
    """Update running statistics as nn.BatchNorm1d does, in two launches for all blocks."""
    running: list[Tensor] = []
    seen: list[Tensor] = []
    for layer, start in zip(layers, starts, strict=True):
        width = len(layer.gamma)
        running += [layer.running_mean, layer.running_var]
        seen += [statistics[start + part * width : start + (part + 1) * width] for part in (2, 3)]
    torch._foreach_lerp_(running, seen, momentum)
    torch._foreach_add_([layer.batches for layer in layers], 1)


@gpu_operator("clocs::conv_blocks")
def _conv_blocks(
    signal: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    gammas: Sequence[Tensor],
    betas: Sequence[Tensor],
    noise: Tensor,
    stride: int,
    dropout: float,
    eps: float,
    fold_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    from clocs_plugins.cnn.fused_forward import run_forward

    plan = geometry.make_plan(signal, weights, stride, fold_first)
    parameters = [Parameters(*four) for four in zip(weights, gammas, betas, biases, strict=True)]
    with torch.cuda.device_of(signal):
        return run_forward(signal, parameters, plan, noise, in_levels(dropout), eps)


@_conv_blocks.register_fake
def _(
    signal: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    gammas: Sequence[Tensor],
    betas: Sequence[Tensor],
    noise: Tensor,
    stride: int,
    dropout: float,
    eps: float,
    fold_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    plan = geometry.make_plan(signal, weights, stride, fold_first)
    last = plan.blocks[-1]
    output = signal.new_empty(last.signals, last.after, last.pooled)
    return output, signal.new_empty(plan.statistics_size), signal.new_empty(plan.kept_size)


@gpu_operator("clocs::conv_blocks_evaluated")
def _conv_blocks_evaluated(
    signal: Tensor,
    weights: Sequence[Tensor],
    gammas: Sequence[Tensor],
    betas: Sequence[Tensor],
    moments: Tensor,
    stride: int,
    eps: float,
) -> Tensor:
    from clocs_plugins.cnn.fused_forward import run_evaluation

    plan = geometry.make_plan(signal, weights, stride, False)
    parameters = [Parameters(*three) for three in zip(weights, gammas, betas, strict=True)]
    each = moments.split([2 * len(gamma) + 1 for gamma in gammas])
    with torch.cuda.device_of(signal):
        return run_evaluation(signal, parameters, plan, each, eps)


@_conv_blocks_evaluated.register_fake
def _(
    signal: Tensor,
    weights: Sequence[Tensor],
    gammas: Sequence[Tensor],
    betas: Sequence[Tensor],
    moments: Tensor,
    stride: int,
    eps: float,
) -> Tensor:
    last = geometry.make_plan(signal, weights, stride, False).blocks[-1]
    return signal.new_empty(last.signals, last.after, last.pooled)


_conv_blocks_evaluated.refuse_gradient()


@gpu_operator("clocs::conv_blocks_backward")
def _conv_blocks_backward(
    gradient: Tensor,
    signal: Tensor,
    weights: Sequence[Tensor],
    gammas: Sequence[Tensor],
    betas: Sequence[Tensor],
    statistics: Tensor,
    kept: Tensor,
    stride: int,
    dropout: float,
    fold_first: bool,
) -> tuple[Tensor, Tensor]:
    from clocs_plugins.cnn.fused_backward import run_backward

    plan = geometry.make_plan(signal, weights, stride, fold_first)
    parameters = [Parameters(*three) for three in zip(weights, gammas, betas, strict=True)]
    scale = in_levels(dropout).scale
    with torch.cuda.device_of(signal):
        return run_backward(gradient, signal, parameters, plan, statistics, kept, scale, fold_first)


@_conv_blocks_backward.register_fake
def _(
    gradient: Tensor,
    signal: Tensor,
    weights: Sequence[Tensor],
    gammas: Sequence[Tensor],
    betas: Sequence[Tensor],
    statistics: Tensor,
    kept: Tensor,
    stride: int,
    dropout: float,
    fold_first: bool,
) -> tuple[Tensor, Tensor]:
    plan = geometry.make_plan(signal, weights, stride, fold_first)
    return signal.new_empty(plan.gradient_size), signal.new_empty(signal.shape if fold_first else (0,))


_conv_blocks_backward.refuse_gradient()


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    signal, weights, _, gammas, betas, _, ctx.stride, ctx.dropout, _, ctx.fold_first = inputs
    _, statistics, kept = output
    ctx.count = len(weights)
    ctx.save_for_backward(signal, statistics, kept, *weights, *gammas, *betas)
    ctx.mark_non_differentiable(statistics, kept)
    ctx.set_materialize_grads(False)  # otherwise torch would write zeros for every kept value


def _differentiate(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 10
    signal, statistics, kept, *parameters = ctx.saved_tensors
    weights, gammas, betas = (parameters[first : first + ctx.count] for first in range(0, 3 * ctx.count, ctx.count))
    made, signal_gradient = torch.ops.clocs.conv_blocks_backward(
        gradient, signal, weights, gammas, betas, statistics, kept, ctx.stride, ctx.dropout, ctx.fold_first
    )
    starts = geometry.make_plan(signal, weights, ctx.stride, ctx.fold_first).gradient_at
    pieces: list[list[Tensor]] = [[], [], [], []]  # gradients of weights, biases, gammas, betas
    for number, start in enumerate(starts):
        weight = weights[number // 4]
        shape = weight.shape if number % 4 == 0 else weight.shape[:1]
        pieces[number % 4].append(made[start : start + shape.numel()].view(shape))
    return (signal_gradient if ctx.fold_first else None, *pieces, None, None, None, None, None)


_conv_blocks.register_autograd(_differentiate, setup_context=_keep)
