"""Map SCP-ECG statements to the classes of a task: the six of the published benchmark, and four groups of rhythms."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from warnings import catch_warnings

GROUPS = ("AFIB", "GSVT", "SB", "SR")
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

# The diagnostic statements by superclass and subclass, as scp_statements.csv of version 1.0.3 has them.
_DIAGNOSES = {
    "NORM": {"NORM": "NORM"},
    "MI": {
        "AMI": "ALMI AMI ASMI INJAL INJAS INJLA",
        "IMI": "ILMI IMI INJIL INJIN IPLMI IPMI",
        "LMI": "LMI",
        "PMI": "PMI",
    },
    "STTC": {
        "ISCA": "ISCAL ISCAN ISCAS ISCLA",
        "ISCI": "ISCIL ISCIN",
        "ISC_": "ISC_",
        "NST_": "NST_",
        "STTC": "ANEUR DIG EL LNGQT NDT",
    },
    "CD": {
        "CLBBB": "CLBBB",
        "CRBBB": "CRBBB",
        "ILBBB": "ILBBB",
        "IRBBB": "IRBBB",
        "IVCD": "IVCD",
        "LAFB/LPFB": "LAFB LPFB",
        "WPW": "WPW",
        "_AVB": "1AVB 2AVB 3AVB",
    },
    "HYP": {"LAO/LAE": "LAO/LAE", "LVH": "LVH", "RAO/RAE": "RAO/RAE", "RVH": "RVH", "SEHYP": "SEHYP"},
}
_FORMS = "ABQRS DIG HVOLT INVT LNGQT LOWT LPR LVOLT NDT NST_ NT_ PAC PRC(S) PVC QWAVE STD_ STE_ TAB_ VCLVH"
_RHYTHMS = "AFIB AFLT BIGU PACE PSVT SARRH SBRAD SR STACH SVARR SVTAC TRIGU"
_RARE = "ILBBB PMI WPW SEHYP AFLT BIGU PSVT SVTAC TRIGU HVOLT PRC(S) STE_ TAB_"  # too rare in fold 10 to test

_SUBCLASS_OF = {code: sub for subs in _DIAGNOSES.values() for sub, codes in subs.items() for code in codes.split()}
_SUPERCLASS_OF = {code: top for top, subs in _DIAGNOSES.items() for codes in subs.values() for code in codes.split()}
_FORM, _RHYTHM = ({code: code for code in codes.split()} for codes in (_FORMS, _RHYTHMS))


def _each_alone(codes: Iterable[str]) -> dict[str, frozenset[str]]:
    return {code: frozenset((code,)) for code in codes}


def _gathered(*maps: Mapping[str, str], but: Iterable[str] = ()) -> dict[str, frozenset[str]]:
    """Return the classes of each code by several maps, without those of `but`."""
    codes = {code for one in maps for code in one}
    return {code: frozenset(one[code] for one in maps if code in one) - set(but) for code in codes}


CLASSES_OF: dict[str, Mapping[str, frozenset[str]]] = {
    "superclass": _gathered(_SUPERCLASS_OF),
    "all": _each_alone([*_SUBCLASS_OF, *_FORM, *_RHYTHM]),
    "diagnostic": _each_alone(_SUBCLASS_OF),
    "subclass": _gathered(_SUBCLASS_OF),
    "form": _each_alone(_FORM),
    "rhythm": _each_alone(_RHYTHM),
    "ptbxl-c": _gathered(_SUBCLASS_OF, _FORM, _RHYTHM, but=_RARE.split()),
}
"""The classes of each statement, by task. A statement can be both a diagnosis and a form, such as NDT."""


@cache
def class_names(task: str) -> tuple[str, ...]:
    """Return the classes of a task: superclasses in the order of the publication, others by name."""
    if task == "superclass":
        return tuple(_DIAGNOSES)
    return tuple(sorted(frozenset().union(*CLASSES_OF[task].values())))


LONGEST = 2000  # characters; the longest text of the set has about 130


@lru_cache(maxsize=1 << 14)  # most recordings share their statements with others
def read_statements(text: str) -> Mapping[str, float]:
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
    return MappingProxyType(held)


def rhythm_group(statements: Mapping[str, float]) -> int | None:
    """Return the group of a recording's rhythm; None if it has none, or several.

    Sinus rhythm beside another group is ignored: the other was an episode in it. The likelihood of a rhythm is
    ignored, since nearly all are 0, which means unknown.
    """
    found = {_GROUP_OF[code] for code in statements if code in _GROUP_OF}
    if len(found) > 1:
        found.discard("SR")
    return GROUPS.index(found.pop()) if len(found) == 1 else None


def classes(statements: Mapping[str, float], task: str, likelihood: float) -> frozenset[int] | None:
    """Return the classes of a recording's statements of at least this likelihood; None where it has none.

    With 0 every statement counts, as in the benchmark of the set's authors (Strodthoff et al. 2021): likelihood 0
    means that the report left it open, not that it was ruled out. Forms and rhythms have no likelihood and count.
    """
    sure = {code for code, degree in statements.items() if degree >= likelihood or code not in _SUPERCLASS_OF}
    of, names = CLASSES_OF[task], class_names(task)
    return frozenset(names.index(name) for code in sure for name in of.get(code, ())) or None
