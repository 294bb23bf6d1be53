"""Divide patients, never recordings, into training, validation and test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from clocs_core.artifacts.split import PARTS, PUBLISHED, Rule, Split, known_rule
from clocs_core.contracts.records import Part
from clocs_core.errors import DataError

_WORDS: dict[str, Part] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def split_patients(patients: Iterable[str], seed: int, rule: Rule) -> Split:
    """Divide the patients into the three parts, each of which gets at least one.

    Patients are sorted by SHA-256 of seed and patient, so the split depends on neither the order of the files nor
    the process. Adding or removing a patient shifts the two cuts in that order by a place or two: at most three of
    the other patients change parts.

    Raises DataError for fewer than three patients, and SettingsError for an unknown rule.
    """
    order = sorted(set(patients), key=lambda patient: (sha256(f"{seed}\t{patient}".encode()).digest(), patient))
    if len(order) < len(PARTS):
        raise DataError(
            f"Training, validation and test need at least one patient each, and there "
            f"{'is' if len(order) == 1 else 'are'} {len(order)} in all: use more recordings, or a data set that says "
            "which patient each is of."
        )
    train, validation = _cuts(len(order), rule)
    parts: dict[str, Part] = {}
    for place, patient in enumerate(order):
        parts[patient] = "train" if place < train else "validation" if place < validation else "test"
    return Split(parts, seed, rule)


def parts_of_patients(patients: Sequence[str], words: Sequence[str]) -> dict[str, Part]:
    """Return the part of every patient, from a word for each recording: train, validation or test.

    Raises DataError for another word, and for a patient in two parts.
    """
    parts: dict[str, Part] = {}
    for patient, word in zip(patients, words, strict=True):
        part = _WORDS.get(word.strip().lower())
        if part is None:
            raise DataError(f"Patient {patient!r} is in part {word!r}; a part is train, validation or test.")
        if parts.setdefault(patient, part) != part:
            raise DataError(
                f"Patient {patient!r} is in two parts, {parts[patient]} and {part}, so scores would be too good. Put "
                "all recordings of a patient into one part."
            )
    return parts


def published_split(parts: Mapping[str, Part], seed: int) -> Split:
    """Return the split that comes with a data set. Raises DataError where a part of it has no patient."""
    split = Split(dict(parts), seed, PUBLISHED)
    empty = [part for part, count in split.counts().items() if not count]
    if empty:
        raise DataError(f"The split that comes with the data has no {empty[0]} patient here; use `split='60/20/20'`.")
    return split


def _cuts(patients: int, rule: Rule) -> tuple[int, int]:
    """Return where validation and test begin. Computed in integers: 0.6 and 0.2 are not exact in binary."""
    if known_rule(rule) == "60/20/20":
        train = max(1, patients * 3 // 5)
        return train, train + max(1, patients // 5)
    others = patients - max(1, patients // 5)
    return others - max(1, others // 5), others
