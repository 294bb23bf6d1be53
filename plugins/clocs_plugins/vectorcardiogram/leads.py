"""Dower's matrix, and how twelve leads follow from the X, Y and Z of a vectorcardiogram.

Dower, Machado and Osborne, "On deriving the electrocardiogram from vectorcardiographic leads", Clinical Cardiology
1980: eight leads are sums of X, Y and Z. The pseudo-inverse goes back. The other four leads of the limbs follow
from I and II. The plugin's card imports this file, so it imports no torch.
"""

from __future__ import annotations

import attrs

from clocs_core import SignalFacts

Rows = tuple[tuple[float, ...], ...]

DOWER: dict[str, tuple[float, float, float]] = {
    "V1": (-0.515, 0.157, -0.917),
    "V2": (0.044, 0.164, -1.387),
    "V3": (0.882, 0.098, -1.277),
    "V4": (1.213, 0.127, -0.601),
    "V5": (1.125, 0.127, -0.086),
    "V6": (0.831, 0.076, 0.230),
    "I": (0.632, -0.235, 0.059),
    "II": (0.235, 1.066, -0.132),
}
"""Each lead as a sum of X, Y and Z."""

LIMBS = {"III": (-1.0, 1.0), "AVR": (-0.5, -0.5), "AVL": (1.0, -0.5), "AVF": (-0.5, 1.0)}
"""Each other lead of the limbs as a sum of I and II."""


@attrs.frozen
class Mixing:
    """The matrices between the channels of a signal and X, Y, Z. Plain numbers: they know no device."""

    inwards: Rows  # (3, channel)
    outwards: Rows  # (channel, 3)


def mixing_of(signals: SignalFacts) -> Mixing:
    """Return the matrices for these channels. Raise ValueError where leads are missing, unknown or apart."""
    import numpy as np

    names = [name.strip().upper() for name in signals.channels]
    missing = [lead for lead in ("I", "II", "V1", "V2", "V3", "V4", "V5", "V6") if lead not in names]
    unknown = [own for own, name in zip(signals.channels, names, strict=True) if name not in (*DOWER, *LIMBS)]
    if missing or unknown:
        found = f"has {', '.join(unknown)}"
        if missing:
            found = f"has no {', '.join(missing)}; name them with `channels=...`"
        raise ValueError(
            "a vectorcardiogram needs the leads I, II and V1 to V6 by name, and of other channels only III, aVR, aVL "
            f"and aVF; the run {found}"
        )
    if signals.channel_axis is None:
        raise ValueError("a vectorcardiogram needs all leads of a frame together: use `leads='all'`")
    dower = np.array(list(DOWER.values()))  # (8, 3)
    inverse = np.linalg.pinv(dower)  # (3, 8)
    inwards = np.zeros((3, len(names)))
    for place, lead in enumerate(DOWER):
        inwards[:, names.index(lead)] = inverse[:, place]
    one, two = dower[list(DOWER).index("I")], dower[list(DOWER).index("II")]
    limbs = {lead: first * one + second * two for lead, (first, second) in LIMBS.items()}
    outwards = np.array([limbs[name] if name in limbs else DOWER[name] for name in names])  # (channel, 3)
    return Mixing(_rows(inwards.tolist()), _rows(outwards.tolist()))


def _rows(matrix: list[list[float]]) -> Rows:
    return tuple(tuple(row) for row in matrix)
