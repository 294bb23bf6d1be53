"""Read the first series of an HL7 annotated ECG (aECG): a sequence of digits per lead, each with origin and scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clocs_core.data.recording import Recording, in_memory, one_unit, tidy_names
from clocs_core.errors import DataError

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_LEAD = "MDC_ECG_LEAD_"
_AUGMENTED = {"AVR": "aVR", "AVL": "aVL", "AVF": "aVF"}


def read_aecg(root: Any, notes: tuple[str, ...]) -> Recording:
    """Read the sequences of the first series. Raises ValueError where it is damaged."""
    series = next((one for one in _inside(root, "series") if _has(one, "sequence")), None)
    if series is None:
        raise DataError("it has no series of sequences")
    group = next(_inside(series, "sequenceSet"), series)
    seconds, names, units, rows = None, [], [], []
    for sequence in _inside(group, "sequence"):
        code = _attribute(sequence, "code", "code")
        if code.startswith("TIME_"):
            seconds = _quantity(sequence, "increment", _SECONDS)
        elif _has(sequence, "digits"):
            unit, row = _lead(sequence)
            names.append(_name(code))
            units.append(unit)
            rows.append(row)
    if not rows or len({len(row) for row in rows}) > 1 or not len(rows[0]):
        raise DataError(f"its leads have {', '.join(str(len(row)) for row in rows) or 'no'} samples")
    if seconds is None or not seconds > 0:
        raise DataError("it does not say the time between two samples")
    unit, factors = one_unit(units)
    subject = next(_inside(root, "trialSubject"), None)
    return in_memory(
        np.stack(rows) * factors,  # (channel, sample)
        channels=tidy_names(names),
        sampling_rate=round(1 / seconds, 6),
        unit=unit,
        patient=_attribute(subject, "id", "extension") if subject is not None else "",
        notes=notes,
    )


def _inside(element: Any, name: str) -> Iterator[Any]:
    """Yield the elements of a name below an element, in any namespace."""
    return (one for one in element.iter() if isinstance(one.tag, str) and one.tag.rpartition("}")[2] == name)


def _has(element: Any, name: str) -> bool:
    return next(_inside(element, name), None) is not None  # an element without children is false by itself


def _attribute(element: Any, child: str, name: str) -> str:
    found = next(_inside(element, child), None)
    return "" if found is None else str(found.get(name, "")).strip()


def _quantity(element: Any, child: str, units: dict[str, float]) -> float:
    unit = _attribute(element, child, "unit") or "s"
    if unit not in units:
        raise DataError(f"a time is given in {unit!r}, expected {', '.join(units)}")
    return float(_attribute(element, child, "value") or "nan") * units[unit]


def _lead(sequence: Any) -> tuple[str, NDArray[np.float64]]:
    """Return the unit and the samples of a sequence: origin + scale x digits."""
    text = next(_inside(sequence, "digits")).text or ""
    digits = np.array(text.split(), dtype=np.float64)
    scale = float(_attribute(sequence, "scale", "value") or "1")
    origin = float(_attribute(sequence, "origin", "value") or "0")
    unit, away = _attribute(sequence, "scale", "unit"), _attribute(sequence, "origin", "unit")
    if origin and away not in ("", unit):
        raise DataError(f"a lead has its origin in {away!r} and its scale in {unit!r}")
    with np.errstate(over="ignore"):  # what is not finite is a missing sample
        return unit, origin + scale * digits


def _name(code: str) -> str:
    plain = code.removeprefix(_LEAD)
    return _AUGMENTED.get(plain, plain)
