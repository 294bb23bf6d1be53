"""Scaling, a transformation of Sarkar and Etemad (IEEE Transactions on Affective Computing, 2020), as in MT-SSL.

A view normalised by its own minimum and maximum looks the same scaled or not. So this is for methods that make a
separate view for each perturbation: those keep the scale of the clean view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor


def scale(signal: Tensor, _generator: Generator, *, factor: float) -> Tensor:
    """Multiply signals (..., sample) by a factor. The generator is not used."""
    return signal * factor
