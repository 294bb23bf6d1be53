"""Show what the formula `released` of patient-NCE changes: both losses of the same embeddings, as a Markdown table.

    python benchmarks/released_variant.py

Embeddings are drawn from N(0, 1) in 128 dimensions, float64, at temperature 0.1; the same seed, the same table.
"""

from __future__ import annotations

import sys
import warnings
from typing import Literal

import torch
from torch import Tensor

from clocs_plugins.contrastive_losses.patient_nce import patient_nce

COLUMNS = (
    "batch K",
    "patients that come twice",
    "views V",
    "`paper`",
    "`released`",
    "`released`, batch in reverse",
    "views with a gradient",
    "cosine of the two gradients",
)
DIM, TEMPERATURE, SEED = 128, 0.1, 0
# Four of 256 is what a batch of Chapman with four leads has: 3.8 pairs of one patient are expected there.
CASES = [(256, 0, 2), *((batch, twice, views) for batch, twice in ((6, 2), (256, 4)) for views in (2, 4, 8))]


def main() -> int:
    """Print the table."""
    print(as_markdown([row(*case) for case in CASES]))
    return 0


def row(batch: int, twice: int, views: int) -> tuple[int | float, ...]:
    """Compare both losses on one batch. Its first `twice` patients come again at its end."""
    generator = torch.Generator().manual_seed(SEED)
    z = torch.randn(views, batch, DIM, generator=generator, dtype=torch.float64)
    patient = torch.arange(batch) % (batch - twice)
    paper, by_paper = loss_and_gradient(z, patient, "paper")
    released, by_released = loss_and_gradient(z, patient, "released")
    reverse, _ = loss_and_gradient(z.flip(1), patient.flip(0), "released")
    reached = int((by_released.flatten(1).abs().amax(1) > 0).sum())
    agreement = torch.cosine_similarity(by_paper.flatten(), by_released.flatten(), dim=0).item()
    return batch, twice, views, paper, released, reverse, reached, agreement


def loss_and_gradient(z: Tensor, patient: Tensor, variant: Literal["paper", "released"]) -> tuple[float, Tensor]:
    """Compute one variant of the loss, and its gradient."""
    z = z.clone().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that most views get no gradient is what the table shows
        loss = patient_nce(z, patient, TEMPERATURE, variant=variant)
    (gradient,) = torch.autograd.grad(loss, z)
    return loss.item(), gradient


def as_markdown(rows: list[tuple[int | float, ...]]) -> str:
    """Write rows as a Markdown table."""
    lines = [COLUMNS, ["---"] * len(COLUMNS), *([cell(value) for value in one] for one in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: int | float) -> str:
    """Write one number."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


if __name__ == "__main__":
    sys.exit(main())
