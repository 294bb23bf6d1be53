"""Check the arguments of both losses: broadcasting would turn wrong shapes into a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def refuse_embeddings(loss: str, views: Tensor, least: int = 1) -> None:
    """Raise ValueError unless the embeddings are (view, batch, dim) with at least two views and `least` instances."""
    shape = tuple(views.shape)
    if len(shape) != 3 or shape[0] < 2 or shape[1] < least:
        raise ValueError(
            f"{loss} got embeddings of shape {shape}, expected (view, batch, dim) with at least two views "
            "and one instance"
        )


def refuse_ids(loss: str, patient: Tensor, views: Tensor) -> None:
    """Raise ValueError unless there is one integer per instance, on the device of the embeddings."""
    ids, expected = tuple(patient.shape), tuple(views.shape[1:2])
    if ids != expected:
        raise ValueError(f"{loss} got patient ids of shape {ids}, expected {expected}: one per instance")
    if patient.is_floating_point() or patient.is_complex():
        raise ValueError(f"{loss} got patient ids of type {patient.dtype}, expected integers")
    if patient.device != views.device:
        raise ValueError(f"{loss} got patient ids on {patient.device}, expected {views.device}, as the embeddings")


def refuse_temperature(loss: str, temperature: float | Tensor) -> None:
    """Raise ValueError unless tau is a positive number or a tensor of one element."""
    if isinstance(temperature, torch.Tensor):
        if temperature.numel() != 1:
            raise ValueError(f"{loss} got a temperature of shape {tuple(temperature.shape)}, expected one element")
    elif not 0 < temperature < float("inf"):
        raise ValueError(f"{loss} got the temperature {temperature}, expected a positive, finite number")


def refuse_precision(loss: str, precision: str) -> None:
    """Raise ValueError for an unknown precision."""
    if precision not in ("fp16", "near-fp32"):
        raise ValueError(f"{loss} got the precision {precision!r}, expected 'fp16' or 'near-fp32'")
