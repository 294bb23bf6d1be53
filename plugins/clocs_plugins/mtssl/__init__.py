"""MT-SSL: recognise perturbations (Sarkar and Etemad, "Self-supervised ECG representation learning", 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, NoOptions, Objective, Setup, ViewGenerator, hookimpl, option
from clocs_plugins.mtssl.original import build_original, original_needs

if TYPE_CHECKING:
    from torch import nn


@attrs.frozen
class PretextOptions:
    """Options of the objective `pretext`."""

    hidden: int = option(
        128, "Hidden units of each head; 0 for linear heads.", check=(lambda units: units >= 0, "be zero or more")
    )


@hookimpl
def clocs_views() -> list[ViewGenerator]:
    """Offer the views."""
    summary = "The original frame, followed by a view for each perturbation of the run."
    return [
        ViewGenerator(name="original", summary=summary, options=NoOptions, needs=original_needs, build=build_original)
    ]


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "A binary head for each perturbation tells perturbed frames from the original ones."
    return [Objective(name="pretext", summary=summary, options=PretextOptions, build=build_pretext, of_embeddings=True)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method as in the CLOCS paper, appendix C."""
    return [
        Method(
            name="mt-ssl",
            summary="Multi-task self-supervision: tell an ECG from its perturbed counterparts, a task for each.",
            views="original",
            encoder="cnn",
            objective="pretext",
            perturbations=("gaussian", "scaling", "flip_x", "flip_y", "permutation", "time_warp"),
            # A signal-to-noise ratio of 15 dB, as in Sarkar and Etemad: 10^(-15/20) of the signal's deviation.
            presets={"gaussian": {"relative": 0.178}},
            # "we only pre-train using scaling, negation, and temporal inversion since additional tasks prevented the
            # network from converging."
            on_dataset={"chapman": {"run": {"perturbations": ["scaling", "flip_x", "flip_y"]}}},
        )
    ]


def build_pretext(options: PretextOptions, setup: Setup) -> nn.Module:
    """Build the objective with a head for each perturbation of the run."""
    from clocs_plugins.mtssl.pretext import Pretext

    return Pretext(setup.perturbations, setup.embedding_dim, options.hidden)
