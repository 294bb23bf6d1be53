"""Turn the ten published folds (strat_fold) into parts: by default 1 to 8 train, 9 validates, 10 tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from clocs_core import DataError, Entry, Part

FOLDS = tuple(str(number) for number in range(1, 11))
"""A person has checked every recording of folds 9 and 10."""


@attrs.frozen
class Folds:
    """The fold that validates and the fold that tests; the others train."""

    validation: int = 9
    test: int = 10

    def part(self, fold: str) -> Part:
        """Return the part of a fold."""
        return "validation" if fold == str(self.validation) else "test" if fold == str(self.test) else "train"


def parts_of(entries: Sequence[Entry], fold_of: Mapping[str, str], folds: Folds) -> dict[str, Part]:
    """Return the part of every patient. Raises DataError if the folds put a patient in two parts.

    fold_of: the fold of each record.
    """
    parts: dict[str, Part] = {}
    for entry in entries:
        part = folds.part(fold_of[entry.record])
        if parts.setdefault(entry.patient, part) != part:
            raise DataError(
                f"PTB-XL: by strat_fold, patient {entry.patient} is in {parts[entry.patient]} and, with recording "
                f"{entry.record}, in {part}, so scores would be too good. Use `parts='patient'`, or the published "
                "ptbxl_database.csv."
            )
    return parts


def published(entries: Sequence[Entry], fold_of: Mapping[str, str], folds: Folds) -> tuple[dict[str, Part] | None, str]:
    """Return the part of every patient; or None and why, where a recording has no fold or a patient is in two parts."""
    without = sorted(record for record, fold in fold_of.items() if fold not in FOLDS)
    if without:
        told = f"{len(without):,} of its recordings have no strat_fold, such as {without[0]}"
        return None, f"{told}: `parts='strat_fold'` leaves them out"
    try:
        return parts_of(entries, fold_of, folds), ""
    except DataError as problem:
        return None, str(problem).partition(". Use ")[0]
