"""Add up the component losses that an objective names, on the device and in place, so that captured steps do it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from clocs_core.errors import PluginError


class Components:
    """The sum of each component over an epoch, weighted by instances. Names are those of the first step."""

    def __init__(self) -> None:
        self.sums: dict[str, Tensor] = {}

    def begin(self) -> None:
        """Set the sums to zero, at the memory where they are."""
        for total in self.sums.values():
            total.zero_()

    def add(self, found: Mapping[str, Tensor], instances: int) -> None:
        """Add the components of one batch, without a host sync."""
        if not isinstance(found, Mapping):
            raise PluginError(
                f"The objective gives the components of its loss as {found!r:.60}; they must be tensors by name. "
                "Its plugin has to be repaired."
            )
        for name, value in found.items():
            if name not in self.sums:
                self.sums[name] = _zero_for(name, value)
            self.sums[name].add_(value.detach(), alpha=instances)

    def means(self, instances: int) -> Sequence[Tensor]:
        """Return the mean of each component over the instances of an epoch, on the device."""
        return [total / instances for total in self.sums.values()]


def _zero_for(name: str, value: object) -> Tensor:
    if not isinstance(value, Tensor) or value.shape != ():
        found = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
        raise PluginError(
            f"The objective gives the component {name!r} of its loss as {found}; it must be a tensor without "
            "dimensions. Its plugin has to be repaired."
        )
    return torch.zeros((), dtype=torch.float64, device=value.device)
