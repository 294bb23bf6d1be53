"""BatchNorm over several processes: one for all, or one for each whose statistics are averaged after an epoch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from clocs_core.train.ranks import Group


class SharedNorm(_BatchNorm):
    """BatchNorm whose mean and variance are those of the rows of all processes, as if one process had them.

    torch's SyncBatchNorm needs a GPU, and cannot take a process without rows.
    """

    group: Group
    absent = False
    """Whether this process has no instances: its rows stand in for some, and do not count."""

    @classmethod
    def of(cls, norm: _BatchNorm, group: Group) -> SharedNorm:
        """Return a module with the weights, the statistics and the settings of a BatchNorm."""
        made = cls(0, norm.eps, norm.momentum, affine=False, track_running_stats=False)
        made.num_features, made.affine = norm.num_features, norm.affine
        made.track_running_stats, made.training = norm.track_running_stats, norm.training
        for name, weight in norm.named_parameters():
            made.register_parameter(name, weight)
        for name, statistic in norm.named_buffers():
            made.register_buffer(name, statistic)
        made.group = group
        return made

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise (n, width, ...). In evaluation by the running statistics, without a message."""
        if not self.training and self.running_mean is not None:
            return F.batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        wide = rows.to(torch.promote_types(rows.dtype, torch.float32))
        over = [dim for dim in range(wide.ndim) if dim != 1]
        shape = [1, -1] + [1] * (wide.ndim - 2)
        counted = wide[:0] if self.absent else wide
        own = wide.new_full((1,), counted.numel() / wide.shape[1])
        sums = _sum_over(torch.cat([counted.sum(over), own]), self.group)
        count = sums[-1].detach()
        mean = sums[:-1] / count  # (width,)
        centred = wide - mean.view(shape)
        spread = (centred[:0] if self.absent else centred).square().sum(over)
        variance = _sum_over(spread, self.group) / count  # (width,)
        if self.training and self.running_mean is not None:
            self._learn(mean.detach(), variance.detach() * count / (count - 1).clamp(min=1))
        scale = (variance + self.eps).rsqrt()
        scale = scale if self.weight is None else scale * self.weight.to(scale.dtype)
        found = centred * scale.view(shape)
        if self.bias is not None:
            found = found + self.bias.to(found.dtype).view(shape)
        return found.to(rows.dtype)

    def _learn(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics towards those of a batch, as BatchNorm does."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share: Any = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_(variance.to(self.running_var.dtype), share)


def share_norms(network: nn.Module, group: Group) -> None:
    """Replace every BatchNorm inside a network by one of all processes. Names of weights stay."""
    for name, child in list(network.named_children()):
        if isinstance(child, _BatchNorm):
            setattr(network, name, SharedNorm.of(child, group))
        else:
            share_norms(child, group)


def average_statistics(network: nn.Module, group: Group) -> None:
    """Give BatchNorm in all processes the mean of their running statistics, so that all evaluate the same network."""
    for module in network.modules():
        if not isinstance(module, _BatchNorm) or isinstance(module, SharedNorm):
            continue
        for statistic in (module.running_mean, module.running_var):
            if statistic is not None:
                statistic.copy_(group.sum(statistic) / group.count)
        if module.num_batches_tracked is not None:  # process 0 has instances in every batch
            module.num_batches_tracked.copy_(group.wire.gather(module.num_batches_tracked)[0])


def _sum_over(tensor: Tensor, group: Group) -> Tensor:
    summed: Tensor = _Sum.apply(tensor, group)  # type: ignore[no-untyped-call]  # torch has no types for it
    return summed


class _Sum(torch.autograd.Function):
    """The sum over all processes. Each needs it, so its gradient is the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.sum(tensor)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        return ctx.group.sum(outer), None
