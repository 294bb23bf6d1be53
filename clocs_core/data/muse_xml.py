"""Read the rhythm of a GE MUSE file: eight leads are stored as 16-bit integers in base64, four are derived."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clocs_core.data.recording import Recording, in_memory, one_unit, tidy_names
from clocs_core.errors import DataError

_ORDER = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


def read_muse(root: Any, notes: tuple[str, ...]) -> Recording:
    """Read the first rhythm of a file. Raises ValueError where it is damaged."""
    waveform = next((one for one in root.iter("Waveform") if _text(one, "WaveformType").lower() == "rhythm"), None)
    if waveform is None:
        raise DataError("it has no waveform of the type Rhythm")
    leads = list(waveform.iter("LeadData"))
    if not leads:
        raise DataError("its rhythm has no leads")
    unit, factors = one_unit([_text(lead, "LeadAmplitudeUnits") for lead in leads])
    counts = [_counts(lead) for lead in leads]
    if len({len(one) for one in counts}) > 1 or not len(counts[0]):
        raise DataError(
            f"its leads have {', '.join(str(len(one)) for one in counts)} samples, expected as many in each"
        )
    steps = [float(_text(lead, "LeadAmplitudeUnitsPerBit") or 1.0) for lead in leads]
    values = np.stack(counts) * np.array(steps)[:, None] * factors  # (channel, sample)
    names = tidy_names([_text(lead, "LeadID") for lead in leads])
    names, values, derived = _with_derived(names, values)
    return in_memory(
        values,
        channels=names,
        sampling_rate=float(f"{_text(waveform, 'SampleBase') or 0}e{_text(waveform, 'SampleExponent') or 0}"),
        unit=unit,
        patient=_text(root, "PatientDemographics/PatientID"),
        notes=notes + derived,
    )


def _text(element: Any, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _counts(lead: Any) -> NDArray[np.float64]:
    raw = b64decode("".join(_text(lead, "WaveFormData").split()), validate=True)
    if len(raw) % 2:
        raise DataError(f"lead {_text(lead, 'LeadID')} has {len(raw):,} bytes, which is no number of 16-bit integers")
    return np.frombuffer(raw, "<i2").astype(np.float64)


def _with_derived(
    names: tuple[str, ...], values: NDArray[np.float64]
) -> tuple[tuple[str, ...], NDArray[np.float64], tuple[str, ...]]:
    """Add the leads that follow from I and II by Einthoven and Goldberger, in the usual order."""
    held = dict(zip(names, values, strict=True))
    added = []
    if "I" in held and "II" in held:
        one, two = held["I"], held["II"]
        made = {"III": two - one, "aVR": -(one + two) / 2, "aVL": one - two / 2, "aVF": two - one / 2}
        added = [name for name in made if name not in held]
        held |= {name: made[name] for name in added}
    order = [name for name in _ORDER if name in held] + [name for name in held if name not in _ORDER]
    notes = (f"{', '.join(added)} are derived from I and II.",) if added else ()
    return tuple(order), np.stack([held[name] for name in order]), notes
