"""Supervised pre-training on the labels of the task, as an upper reference for the other methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clocs_core import Method, NoOptions, Objective, Setup, ViewGenerator, hookimpl
from clocs_plugins.supervised.frames import FramesOptions, build_frames, frames_needs

if TYPE_CHECKING:
    from torch import nn


@hookimpl
def clocs_views() -> list[ViewGenerator]:
    """Offer the views."""
    summary = "Each frame unchanged, as one view."
    return [
        ViewGenerator(name="frames", summary=summary, options=FramesOptions, needs=frames_needs, build=build_frames)
    ]


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "A linear classifier on the embedding, trained on the labels of the task."
    return [Objective(name="classify", summary=summary, options=NoOptions, build=build_classify, of_embeddings=True)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method as in the CLOCS paper, appendix C."""
    summary = "Supervised pre-training on all labels of the training patients."
    return [Method(name="supervised", summary=summary, views="frames", encoder="cnn", objective="classify")]


def build_classify(_options: NoOptions, setup: Setup) -> nn.Module:
    """Build the objective with an output for each class of the task."""
    from clocs_plugins.supervised.classify import Classify

    return Classify(setup.task, setup.embedding_dim)
