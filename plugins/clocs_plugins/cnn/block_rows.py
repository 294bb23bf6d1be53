"""A block of the encoder as a few long operations on a CPU; `block.py` is the reference.

Features are stored as (signal, sample, channel). With z the convolution at all positions, M of them per channel:

    1. z    = windows · filters         one product; the filters carry the sign of gamma, so gamma >= 0 from here on
    2. mean, variance of z              over all positions, also those that pooling leaves out
    3. m    = max(z even, z odd)        pooling first: steps 4 and 5 are increasing, so the maximum stays where it is
    4. x̂    = (m - mean) · r            r = 1 / sqrt(variance + eps)
    5. y    = relu(gamma · x̂ + beta)    times keep / (1 - p) for dropout

and backward, with g the gradient of y where y > 0, which covers dropout and ReLU at once:

    d beta  = sum g,  d gamma = sum g · x̂
    d z     = gamma · r · (g at the even or the odd position, whichever was larger; the even one of equal ones
                           - d beta / M - x̂ · d gamma / M)

It differs from the plain block in four ways. Dropout draws other numbers, from the same generator. The bias of the
convolution, which BatchNorm cancels, gets the gradient 0; in the plain block it gets rounding noise, which Adam turns
into steps of full length. Two positions that differ, but are equal after rounding in BatchNorm, may share a gradient
differently. There is no second derivative.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.linalg import vecdot

from clocs_plugins.cnn.block import Block
from clocs_plugins.cnn.channelwise import moments, scale_, scale_shift, shift_
from clocs_plugins.cnn.dropout_bits import draw_noise, in_levels
from clocs_plugins.cnn.windows import Windows, lay_windows


def train_block(block: Block, features: Tensor) -> Tensor:
    """Run a block in training: features (n, sample, before) to (n, …, after). Update the running statistics."""
    conv, norm = block.conv, block.norm
    results: tuple[Tensor, Tensor, Tensor] = _TrainedBlock.apply(  # type: ignore[no-untyped-call]  # torch has no types
        features, conv.weight, conv.bias, norm.weight, norm.bias, conv.stride[0], norm.eps, block.dropout.p
    )
    made, mean, variance = results
    positions = (features.shape[1] - conv.kernel_size[0]) // conv.stride[0] + 1
    _update_running(norm, mean, variance, len(features) * positions)
    return made


def evaluate_block(block: Block, features: Tensor) -> Tensor:
    """Run a block in evaluation, without gradients: features (n, sample, before) to (n, …, after)."""
    conv, norm = block.conv, block.norm
    bias, mean, variance = _present(conv.bias, norm.running_mean, norm.running_var)
    scale = norm.weight * (variance + norm.eps).rsqrt()
    windows = lay_windows(features, conv.kernel_size[0], conv.stride[0])
    z = _convolve(windows, windows.rows(features), _as_matrix(conv.weight, scale))
    shift = norm.bias + (bias - mean) * scale
    return shift_(torch.maximum(*windows.pairs(z)), shift).relu_()


class _TrainedBlock(Function):
    """Steps 1 to 5. Returns y, and the mean and the biased variance of the convolution with its bias."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        gamma: Tensor,
        beta: Tensor,
        stride: int,
        eps: float,
        dropout: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        windows = lay_windows(features, weight.shape[2], stride)
        sign = gamma.sign()  # never 0: `_rows_can` excludes such blocks
        filters = _as_matrix(weight, sign)  # (kernel * before, after)
        rows = windows.rows(features)
        z = _convolve(windows, rows, filters)  # (n * position, after)
        mean, variance = moments(z, gamma.numel())
        inverse = (variance + eps).rsqrt()
        scale = gamma.abs() * inverse
        dropped, rescale = in_levels(dropout)
        best = torch.maximum(*windows.pairs(z))  # (n, pair, after)
        y = scale_shift(best, scale * rescale, (beta - scale * mean) * rescale).relu_()
        if dropped:
            y = where_above(y, draw_levels(y), dropped - 0.5)
        ctx.save_for_backward(rows, filters, sign, z, best, y, mean, inverse, scale)
        ctx.windows, ctx.rescale = windows, rescale
        mean = mean * sign + bias
        ctx.mark_non_differentiable(mean, variance)
        ctx.set_materialize_grads(False)
        return y, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        """Compute the gradients by the formulas above; `g` lacks the factor `rescale` until it is scaled."""
        if dy is None:
            return (None,) * 8
        rows, filters, sign, z, best, y, mean, inverse, scale = ctx.saved_tensors
        windows: Windows = ctx.windows
        count, width = z.shape
        g = where_above(dy.contiguous(), y, 0)
        dbeta = g.sum((0, 1)) * ctx.rescale
        dgamma = (vecdot(g.view(-1, width), best.view(-1, width), dim=0) * ctx.rescale - mean * dbeta) * inverse
        slope = scale * dgamma * inverse / -count
        dz = scale_shift(z, slope, scale * dbeta / -count - slope * mean)  # by mean and variance
        _add_to_winners(windows.pairs(dz), scale_(g, scale * ctx.rescale), windows.pairs(z))
        dz = dz.view(rows.shape[0], -1)  # (row, together * after)
        dfeatures = windows.add_up(dz @ windows.spread(filters).T) if ctx.needs_input_grad[0] else None
        dweight = _as_weight(windows.collect(rows.T @ dz), sign, windows.kernel) if ctx.needs_input_grad[1] else None
        dbias = torch.zeros_like(scale) if ctx.needs_input_grad[2] else None
        return dfeatures, dweight, dbias, dgamma * sign, dbeta, None, None, None


def draw_levels(like: Tensor) -> Tensor:
    """Draw integers from 0 to 65535 uniformly, in a tensor's shape and dtype, from torch's default generator."""
    return draw_noise(like.numel(), like.device).view(torch.uint16).to(like.dtype).view(like.shape)


def where_above(values: Tensor, others: Tensor, least: float) -> Tensor:
    """Keep values where the others are above `least`, else 0, in one pass: a third of the time of mask and product."""
    kept: Tensor = torch.ops.aten.threshold_backward(values, others, least)
    return kept


def _as_matrix(weight: Tensor, factor: Tensor) -> Tensor:
    """Multiply filters (after, before, kernel) by their factors and reshape them to (kernel * before, after)."""
    return (weight * factor.view(-1, 1, 1)).permute(2, 1, 0).flatten(0, 1)


def _as_weight(filters: Tensor, factor: Tensor, kernel: int) -> Tensor:
    """Reshape filters (kernel * before, after) to (after, before, kernel) and multiply them by their factors."""
    return filters.view(kernel, -1, factor.numel()).permute(2, 1, 0) * factor.view(-1, 1, 1)


def _convolve(windows: Windows, rows: Tensor, filters: Tensor) -> Tensor:
    return (rows @ windows.spread(filters)).view(-1, filters.shape[1])  # (n * position, after)


def _add_to_winners(targets: tuple[Tensor, Tensor], gradient: Tensor, values: tuple[Tensor, Tensor]) -> None:
    """Add a gradient to the even or odd target, whichever has the larger value; to the even one if equal."""
    (even_target, odd_target), (even, odd) = targets, values
    of_odd = where_above(gradient, odd - even, 0)
    odd_target.add_(of_odd)
    even_target.add_(gradient.sub_(of_odd))


@torch.no_grad()
def _update_running(norm: nn.BatchNorm1d, mean: Tensor, variance: Tensor, count: int) -> None:
    """Update running statistics as nn.BatchNorm1d does: unbiased variance; momentum, or a plain average if None."""
    running_mean, running_variance, batches = _present(norm.running_mean, norm.running_var, norm.num_batches_tracked)
    batches.add_(1)
    share = 1 / float(batches) if norm.momentum is None else norm.momentum
    running_mean.lerp_(mean, share)
    running_variance.lerp_(variance * (count / (count - 1)), share)


def _present(*tensors: Tensor | None) -> list[Tensor]:
    """Tell the type checker that the tensors are not None: the modules of a block always have them."""
    return [tensor for tensor in tensors if tensor is not None]
