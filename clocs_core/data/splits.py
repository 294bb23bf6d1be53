"""Who trains, who validates, who tests: patients, never recordings, so that nobody is on both sides of a score."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Literal, TypeAlias, get_args

import attrs

from clocs_core.data.records import Part
from clocs_core.errors import DataError, SettingsError

__all__ = ["Part", "Rule", "Split", "from_json", "published_split", "split_patients", "to_json"]

Rule: TypeAlias = Literal["60/20/20", "64/16/20"]
PUBLISHED: Literal["published"] = "published"  # the rule of a split that comes with the data
PARTS: tuple[Part, ...] = get_args(Part)
SCHEMA = 1


@attrs.frozen
class Split:
    """Which part each patient belongs to, and the seed and the rule that put them there."""

    parts: Mapping[str, Part]
    seed: int
    rule: Rule | Literal["published"]

    @property
    def hash(self) -> str:
        """SHA-256 of the sorted lines "part, tab, patient": equal exactly where the same patients are in each part."""
        lines = sorted(f"{part}\t{patient}" for patient, part in self.parts.items())
        return sha256("\n".join(lines).encode()).hexdigest()

    def patients(self, part: Part) -> tuple[str, ...]:
        """The patients of one part, sorted by name."""
        return tuple(sorted(patient for patient, where in self.parts.items() if where == part))

    def counts(self) -> dict[Part, int]:
        """How many patients each part has."""
        found = Counter(self.parts.values())
        return {part: found[part] for part in PARTS}


def split_patients(patients: Iterable[str], seed: int, rule: Rule) -> Split:
    """Deal the patients to the three parts, each of which gets at least one.

    The order is that of SHA-256 of seed and patient, so it depends on neither the order of the files nor the
    process. A patient more or fewer shifts the two cuts through that order by a place or two: of the others, at
    most three change sides.

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


def published_split(parts: Mapping[str, Part], seed: int) -> Split:
    """The split that comes with a data set. Raises DataError where a part of it has no patient."""
    split = Split(dict(parts), seed, PUBLISHED)
    empty = [part for part, count in split.counts().items() if not count]
    if empty:
        raise DataError(f"The split that comes with the data has no {empty[0]} patient here; use the patient split.")
    return split


def to_json(split: Split) -> str:
    """The split as text that a person can read and `from_json` can check."""
    held = {
        "schema": SCHEMA,
        "seed": split.seed,
        "rule": split.rule,
        "hash": split.hash,
        "patients": {part: split.patients(part) for part in PARTS},
    }
    return json.dumps(held, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> Split:
    """The split that `to_json` wrote. Raises DataError where the text is damaged or was edited by hand."""
    try:
        held = json.loads(text)
        if held["schema"] != SCHEMA:
            raise DataError(f"This split has schema {held['schema']!r}, expected {SCHEMA}: make it anew.")
        parts: dict[str, Part] = {str(patient): part for part in PARTS for patient in held["patients"][part]}
        rule = PUBLISHED if held["rule"] == PUBLISHED else _known(held["rule"])
        split = Split(parts, int(held["seed"]), rule)
        expected = held["hash"]
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise DataError(f"This is not a split of patients ({error!r}): make it anew.") from error
    if split.hash != expected or len(parts) != sum(len(held["patients"][part]) for part in PARTS):
        raise DataError(
            f"The patients of this split do not match its hash ({split.hash[:12]}, expected {str(expected)[:12]}): "
            "it was changed after it was written. Make it anew."
        )
    return split


def _known(rule: str) -> Rule:
    for known in get_args(Rule):
        if rule == known:
            return known  # type: ignore[no-any-return]  # get_args says Any of what is a Rule
    raise SettingsError(f"No split rule {rule!r}; there is {' and '.join(get_args(Rule))}.")


def _cuts(patients: int, rule: Rule) -> tuple[int, int]:
    """Where validation begins and where test begins, in whole numbers: 0.6 and 0.2 are not exact in binary."""
    if _known(rule) == "60/20/20":
        train = max(1, patients * 3 // 5)
        return train, train + max(1, patients // 5)
    others = patients - max(1, patients // 5)
    return others - max(1, others // 5), others
