"""Map labels to classes: words in the first form of the challenge, SNOMED CT codes later, numbers in CPSC 2018."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from clocs_core import DataError

CODES = {
    "164889003": "AF",
    "270492004": "I-AVB",
    "164909002": "LBBB",
    "733534002": "LBBB",  # complete
    "426783006": "Normal",
    "284470004": "PAC",
    "63593006": "PAC",  # supraventricular premature beats
    "164884008": "PVC",  # ventricular ectopics: the code that CPSC's recordings have
    "427172004": "PVC",
    "17338001": "PVC",
    "59118001": "RBBB",
    "713427006": "RBBB",  # complete
    "429622005": "STD",
    "164931005": "STE",
}
NUMBERED = ("Normal", "AF", "I-AVB", "LBBB", "RBBB", "PAC", "PVC", "STD", "STE")  # 1 to 9 in the tables of CPSC 2018
WORDS = {name.lower(): name for name in NUMBERED}


def find_classes(codes: Iterable[str], classes: tuple[str, ...]) -> tuple[frozenset[int], list[str]]:
    """Return the classes of words or codes, and the words or codes without a class."""
    known: set[int] = set()
    others = []
    for code in codes:
        name = CODES.get(code) or WORDS.get(code.lower())
        if name in classes:
            known.add(classes.index(name))
        else:
            others.append(code)
    return frozenset(known), others


def note_ignored(codes: Counter[str]) -> tuple[str, ...]:
    """Return a note on labels outside the nine classes, the most frequent first."""
    if not codes:
        return ()
    first = ", ".join(
        f"{code} ({count:,})" for code, count in sorted(codes.items(), key=lambda one: (-one[1], one[0]))[:5]
    )
    more = ", ..." if len(codes) > 5 else ""
    return (f"{codes.total():,} labels that are not of the nine classes were ignored: {first}{more}.",)


def read_table(file: Path) -> dict[str, list[str]]:
    """Read a REFERENCE.csv of CPSC 2018, such as "A0001,5,,": up to three labels, as words; unknown numbers stay."""
    try:
        rows = list(csv.reader(file.read_text(encoding="utf-8-sig").splitlines()))
    except (UnicodeDecodeError, csv.Error) as problem:
        raise DataError(
            f"{file} is not a table of labels: {problem}. It should have lines such as 'A0001,5,,'."
        ) from problem
    return {row[0].strip(): [_word(cell.strip()) for cell in row[1:4] if cell.strip()] for row in rows if row}


def _word(cell: str) -> str:
    number = cell.removesuffix(".0")  # a spreadsheet may have saved the table
    return NUMBERED[int(number) - 1] if number in tuple("123456789") else cell
