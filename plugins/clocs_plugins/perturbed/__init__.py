"""Views that are perturbed copies of one frame, as SimCLR and BYOL contrast them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Batch, Needs, ViewGenerator, Views, hookimpl, option

if TYPE_CHECKING:
    from torch import Generator


@attrs.frozen
class PerturbedOptions:
    """Options of the views `perturbed`.

    The paper speaks of "applying two stochastic transformations" to an instance (appendix C.3), and of "instances and
    their perturbed counterparts" (section 5.4). The first is what Chen et al. (2020) do, so it is the default.
    """

    perturb: Literal["both", "one"] = option("both", "Perturb both copies of a frame, or one of them.")
    leads: Literal["each", "all"] = option("each", "Read each lead by itself, or all leads of a frame together.")


@hookimpl
def clocs_views() -> list[ViewGenerator]:
    """Offer the views."""
    summary = "Two copies of a frame, which differ by the perturbations of the run."
    return [ViewGenerator(name="perturbed", summary=summary, options=PerturbedOptions, needs=needs, build=build)]


def needs(options: PerturbedOptions) -> Needs:
    """Ask for one frame, of one channel or of all. If both copies are perturbed, one perturbation must be random."""
    return Needs(
        channels=options.leads,
        encoder_channels="one" if options.leads == "each" else "all",
        perturbations="random" if options.perturb == "both" else "some",
    )


def build(options: PerturbedOptions) -> Callable[[Batch, Generator], Views]:
    """Build the function that copies a frame."""
    return partial(copies, perturb=options.perturb)


def copies(batch: Batch, _generator: Generator, *, perturb: Literal["both", "one"]) -> Views:
    """Return each frame twice, in shared memory; core perturbs the copies."""
    signal = batch.signal.transpose(0, 1).expand(2, -1, -1, -1)  # (view, batch, channel, sample)
    return Views(signal=signal, batch=batch, perturb="every" if perturb == "both" else "but the first")
