"""Check what the code of a plugin returns in a training step, and name it. Nothing here waits for the device."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch import Tensor, nn

from clocs_core.contracts.batches import Batch, Views
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


def learnable(loss: Tensor, objective: nn.Module) -> Tensor:
    """Return the loss of an objective. Raises PluginError where no weight can learn from it."""
    if loss.requires_grad:
        return loss
    wrapped = getattr(objective, "loss", None)  # core's own wraps a loss that is a function
    source = wrapped if callable(wrapped) else objective
    raise PluginError(
        f"The loss that {name_of(source)} returned has no gradient. It must be computed from the embeddings by "
        f"operations of torch, without `.item()`, `.detach()` or NumPy. {_ADVICE}"
    )


def views_from(found: object, batch: Batch, generate: object) -> Views:
    """Return the views of a batch. Raises PluginError unless their signals are of the type and place of the batch's."""
    if not isinstance(found, Views):
        raise PluginError(
            f"The view generator {name_of(generate)} returned {found!r:.60}, expected an instance of Views. {_ADVICE}"
        )
    signal, given = found.signal, batch.signal
    if not isinstance(signal, Tensor) or signal.ndim != 4 or signal.shape[1] != len(given) or not _alike(signal, given):
        raise PluginError(
            f"The view generator {name_of(generate)} returned views of {_describe(signal)}, expected "
            f"(view, batch, channel, sample) with {len(given)} instances, {_type_of(given)}. {_ADVICE}"
        )
    return found


def perturbed_from(found: object, signal: Tensor, perturb: object) -> Tensor:
    """Return a perturbed signal. Raises PluginError unless it has the shape, the type and the place of the signal."""
    if isinstance(found, Tensor) and found.shape == signal.shape and _alike(found, signal):
        return found
    raise PluginError(
        f"The perturbation {name_of(perturb)} returned {_describe(found)}, expected signals of the shape "
        f"{tuple(signal.shape)}, {_type_of(signal)}, as it got them. {_ADVICE}"
    )


def _alike(found: Tensor, given: Tensor) -> bool:
    return found.dtype == given.dtype and found.device == given.device


def _type_of(signal: Tensor) -> str:
    return f"{str(signal.dtype).removeprefix('torch.')} on {signal.device.type}"


def name_of(source: object) -> str:
    """Name a function, or the class of an object, with its module."""
    while isinstance(source, partial):
        source = source.func
    named = source if hasattr(source, "__qualname__") else type(source)
    module = getattr(named, "__module__", None)  # methods of C have none
    return f"{module}.{named.__qualname__}" if module else str(named.__qualname__)


def _describe(found: object) -> str:
    if isinstance(found, Tensor):
        return f"a tensor of shape {tuple(found.shape)}, {_type_of(found)}"
    return f"{found!r:.60}, which is no tensor"
