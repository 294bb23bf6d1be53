"""Map eleven rhythms to four groups, by the acronym of the table of diagnoses or by SNOMED code.

The groups are those of Zheng et al., Sci Data 7:48 (2020), which the CLOCS paper classifies, in alphabetical order.
AF is atrial flutter here; fibrillation is AFIB.
"""

from __future__ import annotations

from collections.abc import Iterable

GROUPS = ("AFIB", "GSVT", "SB", "SR")

ACRONYMS = {
    "AFIB": "AFIB",
    "AF": "AFIB",  # atrial flutter
    "ST": "GSVT",
    "SVT": "GSVT",
    "AT": "GSVT",
    "AVNRT": "GSVT",
    "AVRT": "GSVT",
    "SAAWR": "GSVT",
    "SB": "SB",
    "SR": "SR",
    "SA": "SR",
    "SI": "SR",  # sinus irregularity, as the article and RhythmNames.xlsx write it; the table has SA
}

CODES = {
    "164889003": "AFIB",  # atrial fibrillation
    "164890007": "AFIB",  # atrial flutter
    "427084000": "GSVT",  # sinus tachycardia
    "426761007": "GSVT",  # supraventricular tachycardia
    "713422000": "GSVT",  # atrial tachycardia
    "233896004": "GSVT",  # AVNRT, and in other headers
    "251166008": "GSVT",  # AVNRT
    "233897008": "GSVT",  # AVRT
    "17366009": "GSVT",  # SAAWR
    "426177001": "SB",
    "426783006": "SR",
    "427393009": "SR",  # sinus irregularity
}
# One code has two meanings: the rhythm SAAWR, and the finding WAVN (wandering in the AV node), which the table has in
# two recordings of bradycardia. It names the rhythm only where no other code does.
WANDERING = {"195101003": "GSVT"}


def group_of_acronym(acronym: str) -> int | None:
    """Return the group of a rhythm as the table writes it, sometimes padded with spaces; None if it is unknown."""
    group = ACRONYMS.get(acronym.strip().upper())
    return None if group is None else GROUPS.index(group)


def groups_of_codes(codes: Iterable[str]) -> set[int]:
    """Return the groups of the rhythms among SNOMED codes; codes of other findings are ignored."""
    codes = tuple(codes)
    rhythms = {CODES[code] for code in codes if code in CODES}
    rhythms = rhythms or {WANDERING[code] for code in codes if code in WANDERING}
    return {GROUPS.index(group) for group in rhythms}
