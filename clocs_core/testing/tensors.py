"""Helpers of the rules about tensors: no host sync, no other device, no other random generator."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable

import attrs
import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from clocs_core.contracts.batches import Batch
from clocs_core.testing.checks import expect


def refuse_host_sync(call: Callable[[Callable[[Tensor], Tensor]], object]) -> None:
    """Run `call` on tensors without values: code that needs a value on the host fails; it would stall a GPU.

    `call` gets a function that turns a real tensor into such a tensor.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with mode:
            call(mode.from_tensor)
    except Exception as problem:  # torch raises several types, none of them public
        expect(
            False,
            "a computation that stays on the device",
            f"{type(problem).__name__}: {problem}",
            "Avoid .item(), float(), .tolist(), .numpy(), `if tensor`, nonzero and boolean masks: each makes the GPU "
            "wait for the host, and none can be captured. Use torch.where with fixed shapes.",
        )


def refuse_other_devices(call: Callable[[], Tensor], device: torch.device) -> None:
    """Run `call` while torch's default device is another one than `device`."""
    try:
        with torch.device("meta"):
            found = call().device
    except Exception as problem:  # each operation raises its own error for mixed devices
        expect(
            False,
            f"every tensor to be made on the device of the input ({device})",
            f"{type(problem).__name__}: {problem}",
            "Pass device=signal.device wherever a tensor is made.",
        )
    else:
        expect(found == device, f"a result on {device}", found, "Pass device=signal.device wherever a tensor is made.")


def refuse_named_devices(call: Callable[[Callable[[Tensor], Tensor]], Tensor]) -> None:
    """Run `call` on tensors without values on another device: mixing them with tensors of the CPU by name fails.

    `call` gets a function that turns a real tensor into such a tensor. Other rules report other errors.
    """
    mode, device = FakeTensorMode(allow_non_fake_inputs=True), torch.device("meta")
    advice = "Name no device: pass device=signal.device wherever a tensor is made."
    try:
        with mode:
            found = call(lambda tensor: FakeTensor(mode, tensor.to(device), device)).device
    except Exception as problem:  # torch's type for this is not public, but its message has not changed for long
        mixed = "to be on the same device" in str(problem)
        expect(not mixed, "every tensor to be made on the device of the input", str(problem).split(".")[0], advice)
    else:
        expect(found == device, "a result on the device of the input", f"one on {found}", advice)


def refuse_other_randomness(
    call: Callable[[], object], advice: str, watched: tuple[str, ...] = ("torch", "numpy", "random")
) -> None:
    """Run `call` and check that it used no global random generator: torch's, numpy's or Python's."""
    before = _random_states()
    call()
    after = _random_states()
    moved = [name for name in watched if after[name] != before[name]]
    expect(not moved, "no use of a global random generator", f"that of {' and '.join(moved)} has moved", advice)


def copy_of(batch: Batch, take: Tensor | None = None) -> Batch:
    """Clone the batch; with `take`, select these instances in this order."""
    return on_tensors(batch, lambda tensor: tensor.clone() if take is None else tensor[take])


def on_tensors(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """Apply a function to each tensor of the batch."""
    held = {field.name: getattr(batch, field.name) for field in attrs.fields(Batch)}
    about = {name: change(tensor) for name, tensor in batch.about.items()}
    changed = {name: change(tensor) for name, tensor in held.items() if isinstance(tensor, Tensor)}
    return attrs.evolve(batch, **changed, about=about)


def equal(a: Tensor, b: Tensor) -> bool:
    """Return whether two results are equal; NaN equals NaN, since another rule reports NaN."""
    return close(a, b, 0.0)


def close(a: Tensor, b: Tensor, tolerance: float = 1e-4) -> bool:
    """Return whether two results are equal up to rounding, relative to the largest value."""
    if a.shape != b.shape:
        return False
    scale = max(1.0, float(b.detach().nan_to_num(0.0).abs().max())) if b.numel() else 1.0
    return bool(torch.allclose(a.detach(), b.detach(), rtol=0.0, atol=tolerance * scale, equal_nan=True))


def _random_states() -> dict[str, bytes]:
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy": pickle.dumps(np.random.get_state()),  # noqa: NPY002  the global generator is the one to watch
        "random": pickle.dumps(random.getstate()),
    }
