"""The twelve leads, in the order of the files."""

from __future__ import annotations

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")

_BY_SPELLING = {lead.lower(): lead for lead in LEADS}


def lead_name(written: str) -> str:
    """Return the usual name of a lead in any spelling: AVR, avr and "aVR" are aVR; an unknown name is unchanged."""
    bare = written.strip().strip("\"'").strip()
    return _BY_SPELLING.get(bare.lower(), bare)
