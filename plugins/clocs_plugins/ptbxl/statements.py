"""Map SCP-ECG statements to classes: rhythms to the four groups of Chapman, diagnoses to five superclasses."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from warnings import catch_warnings

GROUPS = ("AFIB", "GSVT", "SB", "SR")
SUPERCLASSES = ("NORM", "MI", "STTC", "CD", "HYP")
_GROUP_OF = {
    "AFIB": "AFIB",
    "AFLT": "AFIB",
    "STACH": "GSVT",
    "SVTAC": "GSVT",
    "PSVT": "GSVT",
    "SBRAD": "SB",
    "SR": "SR",
    "SARRH": "SR",
}
LONGEST = 2000  # characters; the longest text of the set has about 130


def read_statements(text: str) -> dict[str, float]:
    """Read a recording's statements with their likelihoods from text such as "{'NORM': 80.0, 'SR': 0.0}".

    Raise ValueError for any other text.
    """
    problem = "scp_codes should be statements with their likelihoods"
    if len(text) > LONGEST:
        raise ValueError(f"{problem}, found {len(text):,} characters")
    try:
        with catch_warnings(action="ignore"):  # the parser warns of text that is refused below
            held = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"{problem}, found {text[:60]!r}") from error
    if not isinstance(held, dict) or not all(
        isinstance(code, str) and type(likelihood) in (int, float) for code, likelihood in held.items()
    ):
        raise ValueError(f"{problem}, found {text[:60]!r}")
    return held


def rhythm_group(statements: Mapping[str, float]) -> int | None:
    """Return the group of a recording's rhythm; None if it has none, or several.

    Sinus rhythm beside another group is ignored: the other was an episode in it. The likelihood of a rhythm is
    ignored, since nearly all are 0, which means unknown.
    """
    found = {_GROUP_OF[code] for code in statements if code in _GROUP_OF}
    if len(found) > 1:
        found.discard("SR")
    return GROUPS.index(found.pop()) if len(found) == 1 else None


def superclasses(
    statements: Mapping[str, float], class_of: Mapping[str, str], likelihood: float
) -> frozenset[int] | None:
    """Return the superclasses of a recording's diagnoses of at least this likelihood; None without a diagnosis.

    With 0 every diagnosis counts, as in the benchmark of the set's authors (Strodthoff et al. 2021): likelihood 0
    means that the report left it open, not that the diagnosis was ruled out.
    """
    found = {class_of[code] for code, degree in statements.items() if code in class_of and degree >= likelihood}
    return frozenset(SUPERCLASSES.index(name) for name in found) or None
