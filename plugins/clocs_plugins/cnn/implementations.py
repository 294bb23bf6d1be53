"""Choose the implementation of the encoder's blocks. All give the same results; the machine decides which is fastest.

plain   torch's modules, one after another: anywhere
rows    `block_rows`: on a CPU, where a batch of 512 frames takes less than 0.4 of the plain time. Below some twenty
        frames its many small operations take longer than they save
fused   `block_fused` and `linear_fused`: kernels for NVIDIA GPUs. If chosen by name, they train or refuse. In
        evaluation torch's modules compute what they cannot
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from clocs_core import SettingsError, Unavailable, missing_for_triton
from clocs_plugins.cnn.block import Block
from clocs_plugins.cnn.block_fused import can_fuse, evaluated_blocks, fused_blocks, layer_of
from clocs_plugins.cnn.block_rows import evaluate_block, train_block
from clocs_plugins.cnn.fused_geometry import LONGEST_WINDOW, WIDEST
from clocs_plugins.cnn.linear_fused import can_fuse_linear, fused_linear

Implementation: TypeAlias = Literal["auto", "plain", "rows", "fused"]
Way: TypeAlias = Literal["plain", "rows", "fused"]

ENOUGH = 60_000
"""Values in a batch from which `rows` is faster: 24 frames of 2500 samples on two threads, 14 frames on one."""


def run_blocks(blocks: nn.Sequential, signal: Tensor, asked: Implementation) -> Tensor:
    """Run signals (n, channel, sample) through the blocks, to (n, width, samples left)."""
    return _WAYS[choose(blocks, signal, asked)](blocks, signal)


def run_linear(linear: nn.Linear, activation: nn.Module, features: Tensor, asked: Implementation) -> Tensor:
    """Run features (n, feature) through the last layer, to (n, dim): by kernels if possible, unless asked otherwise.

    Raise SettingsError if `fused` was asked for and cannot train this layer.
    """
    if asked in ("auto", "fused") and _can_have_kernels(linear, features):
        if not (refusal := _linear_refusal(linear, activation, features)):
            assert linear.bias is not None  # otherwise there is a refusal
            return fused_linear(features, linear.weight, linear.bias, isinstance(activation, nn.ReLU))
        if asked == "fused" and linear.training:
            raise SettingsError(f"The encoder cnn was asked for implementation=fused, which {refusal}. Use auto.")
    representation: Tensor = activation(linear(features))
    return representation


def choose(blocks: nn.Sequential, signal: Tensor, asked: Implementation) -> Way:
    """Choose the implementation: the one asked for if it can run, or for `auto` the fastest that can.

    Raise Unavailable if `rows` was asked for and the signals are on a GPU, or `fused` and they are not. Raise
    SettingsError if `fused` cannot train these blocks on these signals.
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
    if _for_modules(blocks, signal):
        return "plain"
    refusal = _refusal(blocks, signal)
    if on_cpu and asked != "fused":
        large = asked == "rows" or signal.numel() >= ENOUGH
        return "rows" if large and not refusal and _rows_can(blocks) else "plain"
    refusal = refusal or _fused_refusal(blocks, signal)
    if refusal and asked == "fused" and blocks.training:
        raise SettingsError(f"The encoder cnn was asked for implementation=fused, which {refusal}. Use auto.")
    return "plain" if refusal else "fused"


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
    first, layers = built[0], [layer_of(block.conv, block.norm) for block in built]
    if not blocks.training:
        return evaluated_blocks(signal, layers, stride=first.conv.stride[0], eps=first.norm.eps)
    return fused_blocks(
        signal,
        layers,
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


def _for_modules(blocks: nn.Sequential, signal: Tensor) -> bool:
    """Return whether only the plain implementation can run: on tensors without values, and in compilation.

    In evaluation the others keep nothing for a gradient. Wrong shapes also go to torch, which raises its own errors.
    """
    return (
        type(signal) is not Tensor
        or torch.compiler.is_compiling()
        or (torch.is_grad_enabled() and not blocks.training)
        or signal.ndim != 3
        or len(signal) == 0
        or any(signal.shape[1] != conv.in_channels for conv in _convolutions(blocks)[:1])
    )


def _refusal(blocks: nn.Sequential, signal: Tensor) -> str:
    """Return what `rows` and `fused` do not support, as the end of a sentence; empty if nothing."""
    if signal.dtype not in (torch.float32, torch.float64):
        return f"takes signals of float32 or float64, not {signal.dtype}"
    if torch.is_autocast_enabled(signal.device.type):
        return "does not support autocast"
    built = _built(blocks)
    if len(built) != len(blocks) or not all(_as_built(block, blocks.training, signal.dtype) for block in built):
        return "takes blocks as they were built, all of them in one mode and in the dtype of the signals"
    if any(map(_has_hooks, (blocks, *(part for block in built for part in (block, *block))))):
        return "ignores the hooks that are registered on blocks or their parts"
    return ""


def _convolutions(blocks: nn.Sequential) -> list[nn.Conv1d]:
    return [block.conv for block in _built(blocks) if isinstance(block.conv, nn.Conv1d)]


def _built(blocks: nn.Sequential) -> list[Block]:
    return [block for block in blocks if type(block) is Block]


def _as_built(block: Block, training: bool, dtype: torch.dtype) -> bool:
    """Return whether a block still has the parts it was built of, in one mode and one dtype."""
    norm = block.norm
    return (
        [type(part) for part in block] == _PARTS
        and all(part.training == training for part in (block, *block))
        and block.conv.weight.dtype == norm.weight.dtype == dtype
        and norm.running_mean is not None
        and block.dropout.p < 1
    )


_PARTS: list[type[nn.Module]] = [nn.Conv1d, nn.BatchNorm1d, nn.ReLU, nn.MaxPool1d, nn.Dropout]


def _rows_can(blocks: nn.Sequential) -> bool:
    """Return whether gamma is never 0: with 0, all positions are equal and the first gets the gradient; not in rows."""
    return all(bool((block.norm.weight != 0).all()) for block in _built(blocks))


def _fused_refusal(blocks: nn.Sequential, signal: Tensor) -> str:
    """Return what the kernels cannot do, as the end of a sentence; empty if nothing."""
    built = _built(blocks)
    alike = {(block.conv.stride, block.dropout.p, block.norm.momentum, block.norm.eps) for block in built}
    if len(alike) != 1 or built[0].norm.momentum is None:
        return "takes blocks that have one stride, dropout, momentum and epsilon"
    if not can_fuse(signal, [block.conv.weight for block in built], built[0].conv.stride[0]):
        return f"takes float32 on a GPU, widths up to {WIDEST} and windows up to {LONGEST_WINDOW} values, padded"
    return ""


def _can_have_kernels(linear: nn.Linear, features: Tensor) -> bool:
    """Return whether kernels apply: tensors with values on a GPU, not in torch.compile, no gradient in evaluation."""
    computes = type(features) is Tensor and features.is_cuda and not torch.compiler.is_compiling()
    return computes and (linear.training or not torch.is_grad_enabled())


def _linear_refusal(linear: nn.Linear, activation: nn.Module, features: Tensor) -> str:
    """Return what the kernels of the last layer cannot do, as the end of a sentence; empty if nothing."""
    if type(linear) is not nn.Linear or type(activation) not in (nn.ReLU, nn.Identity) or linear.bias is None:
        return "takes the last layer as it was built"
    if _has_hooks(linear) or _has_hooks(activation):
        return "ignores the hooks that are registered on the last layer"
    if torch.is_autocast_enabled(features.device.type):
        return "does not support autocast"
    return "" if can_fuse_linear(features, linear.weight) else f"takes some float32 on a GPU, not {features.dtype}"


def _has_hooks(module: nn.Module) -> bool:
    hooks: Iterable[object] = (
        module._forward_hooks,
        module._forward_pre_hooks,
        module._backward_hooks,
        module._backward_pre_hooks,
    )
    return any(hooks)
