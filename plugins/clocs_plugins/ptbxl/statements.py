"""From SCP-ECG statements to classes: rhythms in the four groups of Chapman, diagnoses in five superclasses."""

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
LONGEST = 2000  # characters; the longest of the set has about 130


def read_statements(text: str) -> dict[str, float]:
    """The statements of a recording with their likelihoods, of text such as "{'NORM': 80.0, 'SR': 0.0}".

    Raises ValueError where it is anything else.
    """
    problem = "scp_codes should be statements with their likelihoods"
    if len(text) > LONGEST:
        raise ValueError(f"{problem}, found {len(text):,} characters")
    try:
        with catch_warnings(action="ignore"):  # of the parser, about text that is refused below
            held = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"{problem}, found {text[:60]!r}") from error
    if not isinstance(held, dict) or not all(
        isinstance(code, str) and type(likelihood) in (int, float) for code, likelihood in held.items()
    ):
        raise ValueError(f"{problem}, found {text[:60]!r}")
    return held


def rhythm_group(statements: Mapping[str, float]) -> int | None:
    """The group of a recording's rhythm; None where it has none, or several.

    Sinus rhythm beside another group gives way to it: it is what the other was an episode in. The likelihood of a
    rhythm is not looked at, since nearly all are 0, which stands for unknown.
    """
    found = {_GROUP_OF[code] for code in statements if code in _GROUP_OF}
    if len(found) > 1:
        found.discard("SR")
    return GROUPS.index(found.pop()) if len(found) == 1 else None


def superclasses(
    statements: Mapping[str, float], class_of: Mapping[str, str], likelihood: float
) -> frozenset[int] | None:
    """The superclasses of a recording's diagnoses of at least this likelihood; None where there is no diagnosis.

    With 0 every diagnosis counts, as in the benchmark of the set's authors (Strodthoff et al. 2021): likelihood 0
    stands for one that the report left open, not for one that was ruled out.
    """
    found = {class_of[code] for code, degree in statements.items() if code in class_of and degree >= likelihood}
    return frozenset(SUPERCLASSES.index(name) for name in found) or None
