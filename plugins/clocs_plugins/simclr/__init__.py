"""SimCLR: perturbed views of one instance attract each other (Chen, Kornblith, Norouzi and Hinton, ICML 2020)."""

from __future__ import annotations

from clocs_core import Method, Variant, hookimpl


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer SimCLR as in the CLOCS paper's comparison: two noisy copies of a frame."""
    released = "As in the authors' code: no ReLU after the encoder's linear layer, BatchNorm per view."
    return [
        Method(
            name="simclr",
            summary="SimCLR: two perturbed copies of one frame attract each other.",
            views="perturbed",
            encoder="cnn",
            loss="nt-xent",
            perturbations=("gaussian",),
            variants={
                "paper": Variant(summary="As in the paper; the same as no variant.", presets={}),
                "released": Variant(
                    summary=released, presets={"encoder": {"layer4_relu": False}, "train": {"per_view": True}}
                ),
            },
        )
    ]
