"""The four rhythms of the Chapman data (Zheng et al. 2020), as ranges from which a patient's pulse is drawn.

A rhythm sets the rate and regularity of the beats and the activity of the atria, nothing else. Size and shape of QRS
and T have the same distribution in all four, so that only the rhythm can be learnt.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

Range = tuple[float, float]  # lowest and highest value over patients


@attrs.frozen
class Rhythm:
    """The ranges of one rhythm over its patients."""

    rates: Range  # beats per minute
    irregularity: Range  # coefficient of variation of RR from beat to beat, without memory
    breathing_depth: Range  # respiratory sinus arrhythmia, relative swing of RR
    early_beats: float  # share of premature beats in a patient who has them
    p_wave: float  # share of patients with a visible P wave
    f_waves: Range  # mV along the atrial dipole, 0 where the atria contract


_RHYTHMS = {
    # Atrial fibrillation: the node lets impulses through at random, the atria quiver.
    "AFIB": Rhythm((70, 150), (0.16, 0.28), (0, 0), 0.0, p_wave=0, f_waves=(0.01, 0.06)),
    # Supraventricular tachycardia: sinus tachycardia with P, or re-entry with P hidden in QRS.
    "GSVT": Rhythm((100, 200), (0.004, 0.015), (0, 0.015), 0.03, p_wave=0.6, f_waves=(0, 0)),
    # Sinus bradycardia and sinus rhythm: below and above 60 per minute; they differ only in rate.
    "SB": Rhythm((38, 58), (0.01, 0.03), (0.01, 0.06), 0.05, p_wave=1, f_waves=(0, 0)),
    "SR": Rhythm((60, 98), (0.01, 0.03), (0.01, 0.06), 0.05, p_wave=1, f_waves=(0, 0)),
}
RHYTHMS = tuple(_RHYTHMS)

_SHORTEST_RR = 0.26  # s; the atrioventricular node is refractory for about this long
_MARGIN = 1.5  # s of beats before and after the recording, whose waves may reach into it


@attrs.frozen
class Pulse:
    """The timing of one patient's heart."""

    rate: float  # beats per minute, on an average day
    rates: Range  # beats per minute; outside this range it would be another rhythm
    irregularity: float  # coefficient of variation of RR, without memory
    breathing_depth: float  # relative swing of RR with each breath
    breathing_rate: float  # Hz
    early_beats: float  # probability that a beat comes too early


def find_rhythm(name: str) -> Rhythm:
    """Return the rhythm of that name; raise ValueError with the known names if there is none."""
    if name not in _RHYTHMS:
        raise ValueError(f"No rhythm {name!r}. The simulator knows {', '.join(RHYTHMS)}.")
    return _RHYTHMS[name]


def draw_pulse(rhythm: Rhythm, rng: np.random.Generator) -> Pulse:
    """Draw one patient's timing from the ranges of the rhythm."""
    has_early_beats = rng.random() < 0.2
    return Pulse(
        rate=rng.uniform(*rhythm.rates),
        rates=rhythm.rates,
        irregularity=rng.uniform(*rhythm.irregularity),
        breathing_depth=rng.uniform(*rhythm.breathing_depth),
        breathing_rate=rng.uniform(0.16, 0.34),
        early_beats=rhythm.early_beats if has_early_beats else 0.0,
    )


def draw_beats(
    pulse: Pulse, breath_phase: float, rng: np.random.Generator, seconds: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw the R peaks of one recording, with a margin before 0 and after its end.

    Args:
        breath_phase: phase of breathing at the start of the recording, in radians.

    Returns:
        Times of the R peaks and the RR interval before each, both in s and of shape (beat,).
    """
    today = pulse.rate * np.exp(0.03 * rng.standard_normal())
    mean = 60.0 / float(np.clip(today, *pulse.rates))
    # 1.5 times the number needed on average: no draw of RR intervals falls short of the end.
    count = int(1.5 * (seconds + 3 * _MARGIN) / mean) + 8
    sigma = np.sqrt(np.log1p(pulse.irregularity**2))
    rr = mean * np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)  # (beat,)
    breath = 2 * np.pi * pulse.breathing_rate * mean * np.arange(count) + breath_phase
    rr *= 1 + pulse.breathing_depth * np.sin(breath)
    early = rng.random(count) < pulse.early_beats
    rr *= np.where(early, 0.68, 1.0)
    rr[1:] *= np.where(early[:-1], 1.25, 1.0)  # the pause that follows an early beat
    rr = np.maximum(rr, _SHORTEST_RR)
    times = np.cumsum(rr) - rr[0] * rng.random() - _MARGIN
    inside = (times > -_MARGIN) & (times < seconds + _MARGIN)
    return times[inside], rr[inside]
