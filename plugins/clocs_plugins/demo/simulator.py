"""A seeded simulator of 12-lead ECGs: a heart dipole, measured by eight leads, with noise at nine electrodes.

The dipole is a sum of Gaussian waves over the beats, as in McSharry et al. 2003 ("A dynamical model for
generating synthetic electrocardiogram signals"), here in three dimensions: x to the patient's left, y to the
feet, z to the front. `Heart` holds the properties of a patient; `simulate` draws those of a single recording.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_plugins.demo.rhythms import Pulse, Range, draw_beats, draw_pulse, find_rhythm

Array = NDArray[np.float64]

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


@attrs.frozen(eq=False)
class Wave:
    """One wave of every beat: a Gaussian in time along a fixed direction in space."""

    vector: Array  # (xyz,) mV
    time: float  # s after the R peak, at 60 beats per minute
    width: float  # s, standard deviation
    skew: float  # positive if the wave rises more slowly than it falls
    stretches: bool  # whether time and width scale with the square root of RR, as QT does (Bazett)


@attrs.frozen(eq=False)
class Heart:
    """The properties of one patient, equal in all recordings."""

    pulse: Pulse
    waves: tuple[Wave, ...]  # P if visible, Q, R, S, T
    f_waves: Array  # (2 sources, xyz) mV, fibrillation of the atria; zeros without it
    f_rate: float  # Hz
    chest: Array  # (8 leads, xyz), the lead vectors of this body
    drift: float  # mV, slow wander of an electrode
    muscle: float  # mV, between 15 and 120 Hz
    mains: float  # mV, at 50 Hz


def draw_heart(rhythm: str, rng: np.random.Generator) -> Heart:
    """Draw a patient with one of `RHYTHMS`; raise ValueError for another rhythm."""
    kind = find_rhythm(rhythm)
    waves = tuple(_draw_wave(usual, rng) for usual in _ADULT)
    p_is_seen = rng.random() < kind.p_wave
    atria = np.stack([_draw_direction((-0.2, 0.8, 0.7), 0.25, rng) for _ in range(2)])  # (2, xyz)
    habitus = np.exp(0.22 * rng.standard_normal())  # a thick chest attenuates all leads equally
    return Heart(
        pulse=draw_pulse(kind, rng),
        waves=waves if p_is_seen else waves[1:],
        f_waves=rng.uniform(*kind.f_waves) * atria,
        f_rate=rng.uniform(4.5, 8.5),
        chest=habitus * (_CHEST + 0.12 * rng.standard_normal(_CHEST.shape)),
        drift=0.05 * np.exp(0.6 * rng.standard_normal()),
        muscle=0.015 * np.exp(0.6 * rng.standard_normal()),
        mains=0.003 * np.exp(0.8 * rng.standard_normal()),
    )


def simulate(
    heart: Heart, rng: np.random.Generator, seconds: float = 10.0, sampling_rate: float = 500.0
) -> NDArray[np.float32]:
    """Record a patient once.

    Args:
        heart: the patient.
        rng: draws what differs between two recordings of a patient: beats, electrode positions, noise.
        seconds: length of the recording.
        sampling_rate: in Hz.

    Returns:
        The leads in the order of `LEADS`, in mV, of shape (12, samples).

    Raises:
        ValueError: if length and sampling rate give no sample.
    """
    samples = round(seconds * sampling_rate)
    if seconds <= 0 or samples < 1:
        raise ValueError(f"A recording needs a sample; {seconds} s at {sampling_rate} Hz have none.")
    time = np.arange(samples) / sampling_rate  # (samples,) s
    breath_phase = rng.uniform(0, 2 * np.pi)
    breath = heart.pulse.breathing_rate * time + breath_phase / (2 * np.pi)  # (samples,) cycles
    beats, rr = draw_beats(heart.pulse, breath_phase, rng, seconds)
    dipole = _sum_waves(heart.waves, beats, rr, samples, sampling_rate)  # (xyz, samples)
    if heart.f_waves.any():
        dipole += _fibrillate(heart, rng, time)
    dipole *= 1 + 0.04 * np.sin(_angle(breath))  # the heart moves under the electrodes with each breath
    # Electrode positions differ between recordings.
    chest = heart.chest * np.exp(0.05 * rng.standard_normal()) + 0.04 * rng.standard_normal((8, 3))
    eight = chest.astype(np.float32) @ dipole.astype(np.float32)  # (8, samples)
    eight += _MEASURE @ _disturb_electrodes(heart, rng, time, breath, sampling_rate)
    return np.asarray(_TWELVE @ eight)  # (12, samples)


# ------------------------------------------------------------------------------------------- the body

# Map from the dipole to leads I, II, V1..V6 of an average chest; rounded from Dower's transform
# (Dower, Machado and Osborne 1980), with z to the front.
_CHEST = np.array(
    [
        [0.63, -0.24, -0.06],
        [0.24, 1.07, 0.13],
        [-0.52, 0.16, 0.92],
        [0.04, 0.16, 1.39],
        [0.88, 0.10, 1.28],
        [1.21, 0.13, 0.60],
        [1.13, 0.13, 0.09],
        [0.83, 0.08, -0.23],
    ]
)  # (8 leads, xyz)

# Map from the potentials at RA, LA, LL, C1..C6 to the eight leads; chest leads are relative to Wilson's terminal.
_MEASURE = np.vstack(
    [
        [[-1, 1, 0] + 6 * [0], [-1, 0, 1] + 6 * [0]],
        np.hstack([np.full((6, 3), -1 / 3), np.eye(6)]),
    ]
).astype(np.float32)  # (8 leads, 9 electrodes)

# Map from the eight leads to all twelve: Einthoven's and Goldberger's identities, then V1..V6; (12, 8 leads).
_LIMBS = [[1, 0], [0, 1], [-1, 1], [-0.5, -0.5], [1, -0.5], [-0.5, 1]]
_TWELVE = np.block([[np.array(_LIMBS), np.zeros((6, 6))], [np.zeros((6, 2)), np.eye(6)]]).astype(np.float32)


@attrs.frozen
class _UsualWave:
    """A wave of a healthy adult, with its ranges over patients."""

    direction: tuple[float, float, float]
    spread: float  # spread of the direction; 0.2 is about 11 degrees each way
    size: Range  # mV
    time: Range  # s after the R peak, at 60 beats per minute
    width: Range  # s, standard deviation
    skew: Range = (0.0, 0.0)
    stretches: bool = False


_ADULT = (
    _UsualWave((0.5, 0.85, 0.15), 0.2, (0.06, 0.17), (-0.19, -0.13), (0.017, 0.025), stretches=True),  # P
    _UsualWave((-0.5, -0.1, 0.8), 0.25, (0.1, 0.45), (-0.028, -0.020), (0.007, 0.010)),  # Q, the septum
    _UsualWave((0.68, 0.62, -0.3), 0.3, (0.9, 1.6), (0.0, 0.0), (0.009, 0.015)),  # R, the electrical axis
    _UsualWave((-0.2, -0.4, -0.8), 0.3, (0.2, 0.8), (0.022, 0.034), (0.009, 0.015)),  # S, the base
    _UsualWave((0.75, 0.55, 0.3), 0.25, (0.15, 0.5), (0.25, 0.32), (0.035, 0.055), (0.1, 0.4), True),  # T
)


def _draw_wave(usual: _UsualWave, rng: np.random.Generator) -> Wave:
    return Wave(
        vector=rng.uniform(*usual.size) * _draw_direction(usual.direction, usual.spread, rng),
        time=rng.uniform(*usual.time),
        width=rng.uniform(*usual.width),
        skew=rng.uniform(*usual.skew),
        stretches=usual.stretches,
    )


def _draw_direction(mean: tuple[float, float, float], spread: float, rng: np.random.Generator) -> Array:
    vector = np.array(mean) / np.linalg.norm(mean) + spread * rng.standard_normal(3)
    return np.asarray(vector / np.linalg.norm(vector))  # (xyz,)


# ------------------------------------------------------------------------------------------ the signal


def _sum_waves(waves: tuple[Wave, ...], beats: Array, rr: Array, samples: int, sampling_rate: float) -> Array:
    """Sum all waves of all beats to the dipole, (xyz, samples) in mV.

    A wave is computed only within four widths of its peak, a tenth of the work of whole recordings.
    """
    # Repolarisation adapts to a new rate over minutes, so a single RR has little weight.
    stretch = np.sqrt(0.3 * rr + 0.7 * rr.mean())  # (beat,)
    dipole = np.zeros((3, samples))
    for wave in waves:
        scale = stretch if wave.stretches else np.ones_like(stretch)
        peaks = beats + wave.time * scale  # (beat,) s
        reach = int(4 * wave.width * scale.max() * (1 + wave.skew) * sampling_rate) + 1
        index = np.rint(peaks * sampling_rate).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
        z = (index / sampling_rate - peaks[:, None]) / (wave.width * scale[:, None])  # (beat, 2 reach + 1)
        if wave.skew:
            z /= np.where(z < 0, 1 + wave.skew, 1 - wave.skew)
        before = max(0, -int(index.min()))  # samples before the recording
        height = np.bincount((index + before).ravel(), np.exp(-0.5 * z * z).ravel(), before + samples)
        dipole += wave.vector[:, None] * height[before : before + samples]
    return dipole


def _fibrillate(heart: Heart, rng: np.random.Generator, time: Array) -> Array:
    """Compute the f waves, (xyz, samples) in mV: two sources whose frequency and strength vary independently."""
    slow = rng.uniform(0.1, 0.6, 4)[:, None] * time + rng.random((4, 1))
    wander = np.sin(_angle(slow))  # (4, samples)
    rate = heart.f_rate * rng.uniform(0.92, 1.08, (2, 1))
    angle = _angle(rate * time + rng.random((2, 1)) + 0.4 * wander[:2])
    quiver = np.sin(angle) + 0.3 * np.sin(2 * angle)  # the second harmonic makes it saw-toothed
    quiver *= 1 + rng.uniform(0.2, 0.6, (2, 1)) * wander[2:]  # (2, samples)
    return heart.f_waves.T @ quiver


def _disturb_electrodes(
    heart: Heart, rng: np.random.Generator, time: Array, breath: Array, sampling_rate: float
) -> NDArray[np.float32]:
    """Draw the noise of each electrode, (9 electrodes, samples) in mV."""
    drift, muscle, mains = np.exp(0.4 * rng.standard_normal(3)) * (heart.drift, heart.muscle, heart.mains)
    if sampling_rate <= 100:
        mains = 0.0  # the recorder's anti-aliasing filter removes it
    slow = rng.uniform(0.03, 0.6, (3, 1)) * time  # (3, samples) cycles
    angle = _angle(np.vstack([breath, slow, 50 * time]))  # (5 tones, samples)
    strength = 0.5 * np.array([drift, drift, drift, drift, 2 * mains])
    mixing = (rng.standard_normal((9, 2, 5)) * strength).astype(np.float32).reshape(9, 10)
    tones = mixing @ np.concatenate([np.cos(angle), np.sin(angle)])  # (9, samples)
    tones += np.float32(muscle) * _draw_muscle(rng, len(time), sampling_rate)
    return np.asarray(tones)


def _draw_muscle(rng: np.random.Generator, samples: int, sampling_rate: float) -> NDArray[np.float32]:
    """Draw white noise between 15 and 120 Hz, of unit strength over that band, (9 electrodes, samples)."""
    bins = samples // 2 + 1
    first, last = (min(bins, round(hz * samples / sampling_rate)) for hz in (15, 120))
    spectrum = np.zeros((9, bins), dtype=np.complex64)
    spectrum.real[:, first:last] = rng.standard_normal((9, last - first), dtype=np.float32)
    spectrum.imag[:, first:last] = rng.standard_normal((9, last - first), dtype=np.float32)
    # A bin adds 4 / samples² to the variance; each of the 105 Hz has samples / sampling_rate bins.
    scale = np.float32(np.sqrt(samples * sampling_rate / (4 * 105)))
    return np.fft.irfft(spectrum, samples).astype(np.float32) * scale


def _angle(cycles: Array) -> NDArray[np.float32]:
    """Convert cycles to radians, without whole cycles, so that float32 (a four times faster sine) is enough."""
    return ((cycles - np.floor(cycles)) * (2 * np.pi)).astype(np.float32)
