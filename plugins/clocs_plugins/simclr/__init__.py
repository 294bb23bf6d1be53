"""SimCLR: perturbed views of one instance attract each other (Chen, Kornblith, Norouzi and Hinton, ICML 2020)."""

from __future__ import annotations

from clocs_core import Method, Variant, hookimpl


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer SimCLR, as the CLOCS paper compares with it: two noisy copies of a frame."""
    released = "What the authors released: no ReLU after the encoder's linear layer, BatchNorm per view."
    return [
        Method(
            name="simclr",
            summary="SimCLR: two perturbed copies of one frame are what is shared.",
            views="perturbed",
            encoder="cnn",
            loss="nt-xent",
            perturbations=("gaussian",),
            variants={
                "paper": Variant(summary="As the paper has it; the same as no variant.", presets={}),
                "released": Variant(
                    summary=released, presets={"encoder": {"layer4_relu": False}, "train": {"per_view": True}}
                ),
            },
        )
    ]
