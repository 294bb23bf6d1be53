"""The two flips of the CLOCS paper (ICML 2021), appendix B. They do not use the generator.

FlipY: "flipping it along the temporal dimension. In other words, the signal is read in reverse". FlipX: "negating
the magnitude of the signal", as incorrectly connected electrodes do. Sarkar and Etemad (IEEE Transactions on Affective
Computing, 2020), and MT-SSL after them, call the two temporal inversion and negation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor


def flip_y(signal: Tensor, _generator: Generator) -> Tensor:
    """Reverse signals (..., sample) in time."""
    return signal.flip(-1)


def flip_x(signal: Tensor, _generator: Generator) -> Tensor:
    """Negate signals (..., sample)."""
    return -signal
