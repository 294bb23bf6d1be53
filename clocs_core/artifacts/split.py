"""The part of each patient, as a record and as the file split.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Literal, TypeAlias, get_args

import attrs

from clocs_core.contracts.records import Part
from clocs_core.errors import DataError, SettingsError

Rule: TypeAlias = Literal["60/20/20", "64/16/20"]
PUBLISHED: Literal["published"] = "published"  # rule for a split that comes with the data
PARTS: tuple[Part, ...] = get_args(Part)
SCHEMA = 1


@attrs.frozen
class Split:
    """The part of each patient, and the seed and the rule that the split was made with."""

    parts: Mapping[str, Part]
    seed: int
    rule: Rule | Literal["published"]

    @property
    def hash(self) -> str:
        """SHA-256 of the sorted lines "part, tab, patient": equal exactly where the same patients are in each part."""
        lines = sorted(f"{part}\t{patient}" for patient, part in self.parts.items())
        return sha256("\n".join(lines).encode()).hexdigest()

    def patients(self, part: Part) -> tuple[str, ...]:
        """Return the patients of one part, sorted by name."""
        return tuple(sorted(patient for patient, where in self.parts.items() if where == part))

    def counts(self) -> dict[Part, int]:
        """Count the patients of each part."""
        found = Counter(self.parts.values())
        return {part: found[part] for part in PARTS}


def to_json(split: Split) -> str:
    """Write the split as readable JSON that `from_json` can check."""
    held = {
        "schema": SCHEMA,
        "seed": split.seed,
        "rule": split.rule,
        "hash": split.hash,
        "patients": {part: split.patients(part) for part in PARTS},
    }
    return json.dumps(held, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> Split:
    """Read what `to_json` wrote. Raises DataError where the text is damaged or was edited by hand."""
    try:
        held = json.loads(text)
        if type(held["schema"]) is not int or held["schema"] != SCHEMA:
            raise DataError(f"This split has schema {held['schema']!r}, expected {SCHEMA}: make it anew.")
        lists = {part: _names(held["patients"][part], part) for part in PARTS}
        parts: dict[str, Part] = {patient: part for part in PARTS for patient in lists[part]}
        rule = PUBLISHED if held["rule"] == PUBLISHED else known_rule(held["rule"])
        if type(held["seed"]) is not int or held["seed"] < 0:
            raise TypeError(f"its seed is {held['seed']!r:.40}")
        split = Split(parts, held["seed"], rule)
        expected = held["hash"]
    except DataError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataError(f"This is not a split of patients ({error!r}): make it anew.") from error
    if split.hash != expected or len(parts) != sum(map(len, lists.values())):
        raise DataError(
            f"The patients of this split do not match its hash ({split.hash[:12]}, expected {str(expected)[:12]}): "
            "it was changed after it was written. Make it anew."
        )
    return split


def _names(found: object, part: Part) -> list[str]:
    """Return the patients of a part. Raises TypeError where they are no list of names."""
    if not isinstance(found, list) or not all(isinstance(patient, str) for patient in found):
        raise TypeError(f"the patients of {part!r} are no list of names")
    return found


def known_rule(rule: str) -> Rule:
    """Return the split rule of this name. Raises SettingsError where there is none."""
    for known in get_args(Rule):
        if rule == known:
            return known  # type: ignore[no-any-return]  # get_args returns Any
    raise SettingsError(f"No split rule {rule!r}; there is {' and '.join(get_args(Rule))}.")
