"""Write docs/results-ptbxl.md and its picture from the scores of `benchmarks/ptbxl.py`, beside published ones.

    python benchmarks/ptbxl_page.py benchmarks/results/ptbxl

The folder has JSON files with rows on fold 10, each with other rows; with rows on another test fold; with earlier
scores of rows that ran again; with rows on fold 9, which tell how settings were chosen; and `supervised.json`, one
supervised run. Published figures are in benchmarks/ptbxl_published.toml.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
from ptbxl_linear_parts import OVERVIEW, differences_part, linear_part, missing_part, unfinished_part, verdicts_part
from ptbxl_other_fold import other_fold_part
from ptbxl_other_parts import (
    FRACTIONS,
    choices_part,
    earlier_part,
    fractions_part,
    protocols_part,
    supervised_part,
)
from ptbxl_pictures import label_efficiency, overview
from ptbxl_rows import HERE, TEST_FOLD, read_rows

DOCS = HERE.parent / "docs"
COMMAND = "python benchmarks/ptbxl_page.py benchmarks/results/ptbxl"


def main() -> int:
    """Write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the JSON files")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the page")
    given = parser.parse_args()
    found, asked = read(given.folder), [row.name for row in read_rows(HERE / "ptbxl.toml")]
    (given.docs / "results-ptbxl.md").write_text(page(found, published(), asked), encoding="utf-8")
    rows = ordered(found.rows, asked)
    (given.docs / "pictures").mkdir(exist_ok=True)
    for name, drawn in ((OVERVIEW, overview(rows, published()["rows"])), (FRACTIONS, label_efficiency(rows))):
        if drawn:
            (given.docs / "pictures" / name).write_bytes(drawn)
    return 0


@attrs.frozen
class Found:
    """What was measured. supervised: one run of `clocs run`, or None.

    tables: of fold 10; choices: of fold 9; earlier: of fold 10, of rows that ran again;
    other_folds: of other test folds; printed: of those, as a call printed them whose files were lost.
    """

    tables: tuple[dict[str, Any], ...]
    choices: tuple[dict[str, Any], ...] = ()
    supervised: dict[str, Any] | None = None
    earlier: tuple[dict[str, Any], ...] = ()
    other_folds: tuple[dict[str, Any], ...] = ()
    printed: tuple[dict[str, Any], ...] = ()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of all tables of fold 10."""
        return [row for table in self.tables for row in table["rows"]]


def read(folder: Path) -> Found:
    """Read a folder of results."""
    files = {one.stem: json.loads(one.read_text(encoding="utf-8")) for one in sorted(folder.glob("*.json"))}
    supervised = files.pop("supervised", None)
    tests, choices, earlier, printed = (
        tuple(one for one in files.values() if one["part"] == part)
        for part in ("test", "validation", "earlier", "printed")
    )
    tables = tuple(one for one in tests if _test_fold(one) == TEST_FOLD)
    other_folds = tuple(one for one in tests if _test_fold(one) != TEST_FOLD)
    return Found(tables, choices, supervised, earlier, other_folds, printed)


def _test_fold(table: dict[str, Any]) -> int:
    """Return the fold that a table scores; older tables do not say it."""
    return int(table.get("test_fold", TEST_FOLD))


def published() -> dict[str, Any]:
    """Read the published figures and their sources."""
    return tomllib.loads((HERE / "ptbxl_published.toml").read_text(encoding="utf-8"))


def page(found: Found, others: dict[str, Any], asked: Sequence[str]) -> str:
    """Return the page.

    others: published figures; asked: the names of all rows that the table is to have.
    """
    commands = [table["command"] for table in found.tables] + [COMMAND]
    machines = _machines(found.tables)
    introduction = _INTRODUCTION.format(machines=machines, commands="\n".join(f"$ {one}" for one in commands))
    rows = ordered(found.rows, asked)
    parts = (
        introduction,
        linear_part(rows, others),
        verdicts_part(rows),
        missing_part(rows, asked),
        unfinished_part(found.tables),
        other_fold_part(found.other_folds, found.printed),
        differences_part(found.tables),
        protocols_part(rows, others),
        fractions_part(rows),
        supervised_part(found.supervised),
        choices_part(found.choices),
        earlier_part(found.earlier),
        _sources(others),
    )
    return "\n".join(part for part in parts if part)


def _machines(tables: Iterable[dict[str, Any]]) -> str:
    """Name each machine once, with the days on which it was used."""
    days: dict[str, set[str]] = {}
    for table in tables:
        days.setdefault(table["machine"], set()).add(table["date"])
    return "; ".join(f"{machine}, {' and '.join(sorted(those))}" for machine, those in days.items())


def ordered(rows: Iterable[dict[str, Any]], asked: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows in the order in which they were asked for; others come last."""
    place = {name: number for number, name in enumerate(asked)}
    return sorted(rows, key=lambda row: place.get(row["name"], len(place)))


_INTRODUCTION = """# Results on PTB-XL, as its benchmark scores them

Macro AUROC on fold 10 of PTB-XL (100 Hz, 12 leads), one vector per recording, after pre-training on folds 1-8: without
labels, but for `supervised`, which has the labels of `superclass`. Here folds 1-8 have 12,883 of the 17,418 recordings
of version 1.0.3, for pre-training and for the labels of the linear model; folds 9 and 10 are complete. A third of the
recordings are of version 1.0.1, and fold 10 has one more than in 1.0.3. The signal of one recording of fold 10, 13796,
is nearly that of 1371, in folds 1-8.

Rows have the defaults of their methods, but for the epochs in the table, for what their names say, and for bf16. `cmsc`
has a projector, AdamW and a schedule, and `supervised` has batches of 128; the other rows have 256.
`benchmarks/ptbxl.toml` has all settings. The methods' own default is 400 epochs for `jepa` and `mae`, and 100 for the
others without labels but `cmsc`. `pclr` learns from patients with several recordings only: 2,982 recordings.

Six methods were compared [on fold 9](#chosen-on-fold-9). The best three by `all` there have five seeds:
`rhythm-and-patient` with 100 epochs, `cpc`, and `vicreg-many`, of which 30 and 100 epochs differ by less than 0.002.
The other methods, and the other encoders of each method, were not tried on fold 9; they ran with one seed. So `jepa`
with `xresnet1d`, which is among the best rows on fold 10, is not one of the three. `cpc` and `rhythm-and-patient`
predict what follows and need a causal encoder, which `s4d` alone is; all other methods have rows with all three
encoders.

Fold 10 was scored in five rounds. Later choices were made with earlier scores of fold 10 known: more epochs, and
shorter hidden stretches for `mae`, were then tried on fold 9, and `vicreg-many` got its five seeds with 30 epochs when
both had been scored. Six rows were scored twice, with [other numbers of seeds](#earlier-scores): of three, time was up
in a first call, and three had one seed. All other rows were scored once.

Rows of `rhythm-and-patient` without a part show [what the part is worth](#differences-between-rows). Without the
rhythm, the patient's part has weight 1, as the only one.

The mean over seeds comes with its 95 % interval over seeds and patients. One seed has an interval over patients only. A
draw of the bootstrap that has no recording of a class leaves the class out: five of the 12 rhythms have at most eight
recordings in fold 10. The control is the same encoder untrained, under the same protocol and with the same frames:
whole recordings, halves or quarters, whose vectors are averaged. Minutes are those of one pre-training; most of them
shared the GPU with others ({machines}). These commands repeat all rows:

```console
{commands}
```
"""


def _sources(others: dict[str, Any]) -> str:
    lines = [f"- ({name}) {text}" for name, text in others["sources"].items()]
    return "\n".join(["## Sources", "", *lines, ""])


if __name__ == "__main__":
    raise SystemExit(main())
