"""What is measured."""

from __future__ import annotations

import attrs

__all__ = ["Measure"]


@attrs.frozen
class Measure:
    """What is measured: a metric by name, of frames or of recordings, with so many bootstrap samples of patients."""

    metric: str = "auroc"
    level: str = "frame"
    resamples: int = 1000
