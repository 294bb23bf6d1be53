"""Which way the blocks of the encoder are computed. The ways give the same; which is fastest depends on the machine.

plain   modules of torch, one after another: anywhere
rows    `block_rows`: on a CPU, where a batch of 512 frames takes less than 0.4 of the plain time. Below some twenty
        frames its many small operations take longer than what they save
fused   `block_fused` and `linear_fused`: kernels for NVIDIA GPUs, in training
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from clocs_core import Unavailable, missing_for_triton
from clocs_plugins.cnn.block import Block
from clocs_plugins.cnn.block_fused import can_fuse, fused_blocks, layer_of
from clocs_plugins.cnn.block_rows import evaluate_block, train_block
from clocs_plugins.cnn.linear_fused import can_fuse_linear, fused_linear

__all__ = ["Implementation", "choose", "run_blocks", "run_linear"]

Implementation: TypeAlias = Literal["auto", "plain", "rows", "fused"]
Way: TypeAlias = Literal["plain", "rows", "fused"]

ENOUGH = 60_000
"""Values in a batch from which `rows` is faster: 24 frames of 2500 samples on two threads, 14 of them on one."""


def run_blocks(blocks: nn.Sequential, signal: Tensor, asked: Implementation) -> Tensor:
    """Signals (n, channel, sample) through the blocks, to (n, width, samples left), in the way that was asked for."""
    return _WAYS[choose(blocks, signal, asked)](blocks, signal)


def run_linear(linear: nn.Linear, activation: nn.Module, features: Tensor, asked: Implementation) -> Tensor:
    """Features (n, feature) through the last layer, to (n, dim): by kernels where they can, unless asked otherwise."""
    if asked in ("auto", "fused") and _linear_can(linear, activation, features):
        assert linear.bias is not None  # or the kernels could not
        return fused_linear(features, linear.weight, linear.bias, isinstance(activation, nn.ReLU))
    representation: Tensor = activation(linear(features))
    return representation


def choose(blocks: nn.Sequential, signal: Tensor, asked: Implementation) -> Way:
    """The way to go: what was asked for, where it can be done, or for `auto` the fastest that can.

    Raises Unavailable where `rows` was asked for and the signals are on a GPU, or `fused` and they are not.
    """
    if asked == "plain" or signal.device.type == "meta":
        return "plain"
    on_cpu = signal.device.type == "cpu"
    if asked == "rows" and not on_cpu:
        raise Unavailable(
            f"The encoder cnn was asked for implementation=rows, which runs on a CPU, but its signals are on "
            f"{signal.device}. Use implementation=auto."
        )
    if asked == "fused" and (missing := missing_for_triton(signal.device)):
        raise Unavailable(f"The encoder cnn was asked for implementation=fused, which {missing}. Use auto.")
    if not _as_written_for(blocks, signal):
        return "plain"
    if on_cpu and asked != "fused":
        return "rows" if (asked == "rows" or signal.numel() >= ENOUGH) and _rows_can(blocks) else "plain"
    return "fused" if _fused_can(blocks, signal) else "plain"


def _run_plain(blocks: nn.Sequential, signal: Tensor) -> Tensor:
    features: Tensor = blocks(signal)
    return features


def _run_rows(blocks: nn.Sequential, signal: Tensor) -> Tensor:
    features = signal.transpose(1, 2)  # (n, sample, channel)
    for block in _built(blocks):
        features = (train_block if block.training else evaluate_block)(block, features)
    return features.transpose(1, 2)  # (n, width, samples left)


def _run_fused(blocks: nn.Sequential, signal: Tensor) -> Tensor:
    built = _built(blocks)
    first = built[0]
    return fused_blocks(
        signal,
        [layer_of(block.conv, block.norm) for block in built],
        stride=first.conv.stride[0],
        dropout=first.dropout.p,
        momentum=first.norm.momentum or 0.0,  # never None: such blocks are not chosen
        eps=first.norm.eps,
    )


_WAYS: Mapping[str, Callable[[nn.Sequential, Tensor], Tensor]] = {
    "plain": _run_plain,
    "rows": _run_rows,
    "fused": _run_fused,
}


def _as_written_for(blocks: nn.Sequential, signal: Tensor) -> bool:
    """Whether these are signals and blocks that the other ways were written for; the plain way takes all others.

    In evaluation they keep nothing for a gradient. Tensors without values, autocast and compilation are for modules.
    """
    built = _built(blocks)
    return (
        type(signal) is Tensor
        and signal.dtype in (torch.float32, torch.float64)
        and (blocks.training or not torch.is_grad_enabled())
        and not torch.is_autocast_enabled(signal.device.type)
        and not torch.compiler.is_compiling()
        and len(built) == len(blocks)
        and all(_as_built(block, blocks.training, signal.dtype) for block in built)
        and signal.ndim == 3
        and signal.shape[1] == built[0].conv.in_channels
        and len(signal) > 0
    )


def _built(blocks: nn.Sequential) -> list[Block]:
    return [block for block in blocks if type(block) is Block]


def _as_built(block: Block, training: bool, dtype: torch.dtype) -> bool:
    """Whether a block's parts are those it was built of, in one mode, and nobody listens to them."""
    norm = block.norm
    return (
        [type(part) for part in block] == _PARTS
        and all(part.training == training and not _has_hooks(part) for part in (block, *block))
        and block.conv.weight.dtype == norm.weight.dtype == dtype
        and norm.running_mean is not None
        and block.dropout.p < 1
    )


_PARTS: list[type[nn.Module]] = [nn.Conv1d, nn.BatchNorm1d, nn.ReLU, nn.MaxPool1d, nn.Dropout]


def _rows_can(blocks: nn.Sequential) -> bool:
    """Where gamma is 0 all positions are equal, and the first has the gradient: rows would give it to another."""
    return all(bool((block.norm.weight != 0).all()) for block in _built(blocks))


def _fused_can(blocks: nn.Sequential, signal: Tensor) -> bool:
    """Whether the kernels can: in training, with one stride, dropout, momentum and epsilon for all blocks."""
    built = _built(blocks)
    alike = {(block.conv.stride, block.dropout.p, block.norm.momentum, block.norm.eps) for block in built}
    return (
        blocks.training
        and len(alike) == 1
        and built[0].norm.momentum is not None
        and can_fuse(signal, [block.conv.weight for block in built], built[0].conv.stride[0])
    )


def _linear_can(linear: nn.Linear, activation: nn.Module, features: Tensor) -> bool:
    """Whether this is a layer that the kernels were written for, as built, and in training."""
    return (
        type(features) is Tensor
        and features.is_cuda
        and type(linear) is nn.Linear
        and type(activation) in (nn.ReLU, nn.Identity)
        and linear.bias is not None
        and linear.training
        and not _has_hooks(linear)
        and not _has_hooks(activation)
        and not torch.is_autocast_enabled(features.device.type)
        and not torch.compiler.is_compiling()
        and can_fuse_linear(features, linear.weight)
    )


def _has_hooks(module: nn.Module) -> bool:
    hooks: Iterable[object] = (
        module._forward_hooks,
        module._forward_pre_hooks,
        module._backward_hooks,
        module._backward_pre_hooks,
    )
    return any(hooks)
