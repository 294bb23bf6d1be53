"""Check what the code of a plugin returns in a training step, and name it. Nothing here waits for the device."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch import Tensor

from clocs_core.errors import PluginError

_NO_COMPONENTS: Mapping[str, Tensor] = {}
_ADVICE = "`clocs plugins test` checks all that a plugin promises."


def loss_from(found: object, source: object) -> Tensor:
    """Return a loss. Raises PluginError unless it is one number in a tensor. source: the loss or the objective."""
    if isinstance(found, Tensor) and found.numel() == 1:
        return found
    raise PluginError(
        f"{name_of(source)} returned {_describe(found)}, expected a loss: one number in a tensor, made by "
        f"operations of torch. {_ADVICE}"
    )


def loss_and_components_from(found: object, objective: object) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return the loss of an objective, and the components that it names."""
    loss, components = found if isinstance(found, tuple) and len(found) == 2 else (found, _NO_COMPONENTS)
    return loss_from(loss, objective), components


def perturbed_from(found: object, signal: Tensor, perturb: object) -> Tensor:
    """Return a perturbed signal. Raises PluginError unless it has the shape of the signal."""
    if isinstance(found, Tensor) and found.shape == signal.shape:
        return found
    raise PluginError(
        f"The perturbation {name_of(perturb)} returned {_describe(found)}, expected signals of the shape "
        f"{tuple(signal.shape)}, as it got them. {_ADVICE}"
    )


def name_of(source: object) -> str:
    """Name a function, or the class of an object, with its module."""
    while isinstance(source, partial):
        source = source.func
    named = source if hasattr(source, "__qualname__") else type(source)
    return f"{named.__module__}.{named.__qualname__}"


def _describe(found: object) -> str:
    if isinstance(found, Tensor):
        return f"a tensor of shape {tuple(found.shape)}"
    return f"{found!r:.60}, which is no tensor"
