"""Scores and comparisons, as report.json stores them."""

from __future__ import annotations

from typing import Literal

import attrs

RANDOM = "random"
"""Init of the control: the same encoder, untrained. Also the init of the class prior, which has no encoder."""
PRIOR = "prior"
"""Protocol of the class prior."""
CHANCE = "chance"
"""Init of retrieval in a random order."""
CONTROLS = (RANDOM, CHANCE)
"""The names that no method can have."""


@attrs.frozen
class Score:
    """The value of a metric with its 95 % interval by bootstrap over patients.

    protocol: `linear`, `finetune`, `patient-identification`, the protocol of a plugin, or a control without a signal:
    `prior` or `chance`.
    init: the method's name, `random` (the same encoder untrained; also used for the class prior, which has
    no encoder at all) or `supervised`.
    """

    protocol: str
    init: str
    dataset: str
    label_fraction: float
    metric: str
    level: Literal["frame", "record"]
    value: float
    low: float
    high: float

    @property
    def is_prior(self) -> bool:
        """Whether it is of the class prior."""
        return self.protocol == PRIOR

    @property
    def is_control(self) -> bool:
        """Whether it is of a classifier without pre-training: the class prior, or the untrained encoder."""
        return self.is_prior or self.init == RANDOM


@attrs.frozen
class Comparison:
    """The paired difference a - b over the same resampled test patients, with its 95 % interval.

    better: whether a `higher` or a `lower` score of this metric is better.
    seeds: how many seeds each side is the mean of. With several, the interval is over seeds and patients; with one, it
    is over patients alone, and another seed may differ by more.
    p: of a permutation test over the test patients, two-sided, for one seed. None: of several seeds, or not asked.
    """

    a: str
    b: str
    protocol: str
    dataset: str
    label_fraction: float
    metric: str
    level: Literal["frame", "record"]
    difference: float
    low: float
    high: float
    seeds: int = 1
    better: Literal["higher", "lower"] = "higher"
    p: float | None = None
