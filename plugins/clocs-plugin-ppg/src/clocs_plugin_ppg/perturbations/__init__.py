"""Perturbations of a pulse wave: baseline wander, breathing, and motion. This card imports no torch.

A perturbation sees samples, not seconds. So frequencies are in cycles per frame: 3 cycles in 10 s are 0.3 Hz.
Strengths are relative to each signal's standard deviation, because a PPG has no unit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs
from clocs_core import Perturbation, option

if TYPE_CHECKING:
    from torch import Generator, Tensor

_strength = (lambda size: 0 <= size < float("inf"), "be zero or more, and finite")
_cycles = (lambda count: 0 < count < float("inf"), "be positive and finite")
_share = (lambda share: 0 <= share <= 1, "be between 0 and 1")


@attrs.frozen
class DriftOptions:
    """Options of the perturbation `ppg-drift`."""

    strength: float = option(0.5, "Strength of the wander, in standard deviations of the signal.", check=_strength)
    cycles: float = option(2.0, "Cycles per frame of the fastest wave; slower ones are as likely.", check=_cycles)


@attrs.frozen
class ModulationOptions:
    """Options of the perturbation `ppg-modulation`. In 10 s, breathing has 2 to 5 cycles."""

    depth: float = option(0.3, "Largest relative change of the pulse wave by a breath, up and down.", check=_share)
    cycles: float = option(4.0, "Cycles per frame of the fastest breathing; slower is as likely.", check=_cycles)


@attrs.frozen
class MotionOptions:
    """Options of the perturbation `ppg-motion`."""

    strength: float = option(1.0, "Strength of a burst, in standard deviations of the signal.", check=_strength)
    length: float = option(0.2, "Length of the longest burst, as a share of the frame.", check=_share)
    cycles: float = option(20.0, "Cycles per frame of the fastest shaking; slower is as likely.", check=_cycles)


def build_drift(options: DriftOptions, _unit: str) -> Callable[[Tensor, Generator], Tensor]:
    """Build the function that adds baseline wander."""
    from clocs_plugin_ppg.perturbations.waves import drift

    return partial(drift, strength=options.strength, cycles=options.cycles)


def build_modulation(options: ModulationOptions, _unit: str) -> Callable[[Tensor, Generator], Tensor]:
    """Build the function that modulates amplitudes."""
    from clocs_plugin_ppg.perturbations.waves import modulate

    return partial(modulate, depth=options.depth, cycles=options.cycles)


def build_motion(options: MotionOptions, _unit: str) -> Callable[[Tensor, Generator], Tensor]:
    """Build the function that adds bursts of motion."""
    from clocs_plugin_ppg.perturbations.waves import shake

    return partial(shake, strength=options.strength, length=options.length, cycles=options.cycles)


DRIFT = Perturbation(
    name="ppg-drift", summary="The baseline of every signal wanders slowly.", options=DriftOptions, build=build_drift
)
MODULATION = Perturbation(
    name="ppg-modulation",
    summary="The amplitude of every signal rises and falls, as with breathing.",
    options=ModulationOptions,
    build=build_modulation,
)
MOTION = Perturbation(
    name="ppg-motion",
    summary="A burst of shaking, as of a moving finger, is added to every signal.",
    options=MotionOptions,
    build=build_motion,
)
