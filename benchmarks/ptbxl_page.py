"""Write docs/results-ptbxl.md and its picture from the scores of `benchmarks/ptbxl.py`, beside published ones.

    python benchmarks/ptbxl_page.py benchmarks/results/ptbxl

The folder has JSON files with rows on fold 10, each with other rows; with rows on another test fold; with earlier
scores of rows that ran again; with rows on fold 9, which tell how settings were chosen; and `supervised.json`, one
supervised run. Published figures are in benchmarks/ptbxl_published.toml.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
from ptbxl_pictures import label_efficiency, overview
from ptbxl_rows import HERE, IDENTIFICATION, LINEAR, TASKS, TEST_FOLD, read_rows
from ptbxl_scores import PERMUTATIONS, by_fraction, is_main, score_of

DOCS = HERE.parent / "docs"
OVERVIEW, FRACTIONS = "ptbxl.png", "label-efficiency.png"
"""Pictures of the page."""
PROTOCOLS = {
    "finetune": "fine-tuned",
    "attention-pool": "attention pool",
    "knn": "nearest neighbours",
    IDENTIFICATION: "patient identification, recall at 1",
}
"""Protocols besides the linear one, and how the page calls them."""
DIFFERING = {
    "epochs": "epochs",
    "batch_size": "batch",
    "learning_rate": "learning rate",
    "layer_decay": "times per block",
}
"""Settings of a fine-tuning that the page names, and its words for them."""
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

    tables: of fold 10; choices: of fold 9; earlier: of fold 10, of rows that ran again; once: of another test fold.
    """

    tables: tuple[dict[str, Any], ...]
    choices: tuple[dict[str, Any], ...] = ()
    supervised: dict[str, Any] | None = None
    earlier: tuple[dict[str, Any], ...] = ()
    once: tuple[dict[str, Any], ...] = ()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of all tables of fold 10."""
        return [row for table in self.tables for row in table["rows"]]


def read(folder: Path) -> Found:
    """Read a folder of results."""
    files = {one.stem: json.loads(one.read_text(encoding="utf-8")) for one in sorted(folder.glob("*.json"))}
    supervised = files.pop("supervised", None)
    tests, choices, earlier = (
        tuple(one for one in files.values() if one["part"] == part) for part in ("test", "validation", "earlier")
    )
    tables = tuple(one for one in tests if _test_fold(one) == TEST_FOLD)
    once = tuple(one for one in tests if _test_fold(one) != TEST_FOLD)
    return Found(tables, choices, supervised, earlier, once)


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
    parts = [introduction, _linear(rows, others), _verdicts(rows)]
    parts += [_missing(rows, asked), _unfinished(found.tables), _once(found.once), _between(found.tables)]
    parts += [_other_protocols(rows, others), _fractions(rows), _supervised(found.supervised)]
    parts += [_choices(found.choices), _earlier(found.earlier), _sources(others)]
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

Fold 10 was scored in five rounds, and what it showed was known afterwards: more epochs, and shorter hidden stretches
for `mae`, were then tried on fold 9, and `vicreg-many` got its five seeds with 30 epochs when both had been scored. Six
rows were scored twice, with [other numbers of seeds](#earlier-scores): of three, time was up in a first call, and three
had one seed. All other rows were scored once.

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


def _linear(rows: Iterable[dict[str, Any]], others: dict[str, Any]) -> str:
    """Return the main table: a frozen encoder and a linear model whose C was chosen on fold 9."""
    head = ["method, encoder", "frames", "parameters", "epochs", "seeds", "minutes", *TASKS]
    lines = []
    for row in rows:
        scores = {one["task"]: one for one in row["scores"] if is_main(one)}
        if scores:
            minutes = statistics.median(row["pretrain_seconds"]) / 60
            counts = [len(one["seeds"]) for one in scores.values()]
            seeds = " to ".join(str(one) for one in sorted({min(counts), max(counts)}))
            cells = [_cell(scores[task]) if task in scores else "" for task in TASKS]
            size, epochs = f"{row['parameters'] / 1e6:.1f} M", str(row["options"]["epochs"])
            lines.append([row["name"], row["frames"], size, epochs, seeds, f"{minutes:.1f}", *cells])
    theirs = [_their_row(one) for one in others["rows"] if one["protocol"] == "linear"]
    return "\n".join(
        [
            "## Linear",
            "",
            "A frozen encoder, and a linear model whose penalty was chosen on fold 9. AUROC with its interval; then "
            "how far it is above the untrained control, with the interval of that difference.",
            "",
            f"![AUROC of every row on three tasks, of its untrained encoder, and published](pictures/{OVERVIEW})",
            "",
            *_table(head, lines),
            "",
            "Published, with other and mostly more recordings for pre-training:",
            "",
            *_table(["model", "pre-trained on", "parameters", "source", *TASKS], theirs),
            "",
            "The best of both, without labels or reports in pre-training:",
            "",
            *_table(["", *TASKS], _best(rows, others)),
            "",
        ]
    )


def _best(rows: Iterable[dict[str, Any]], others: dict[str, Any]) -> list[list[str]]:
    """Return the highest linear AUROC of our rows and of published ones on each task, with their names."""
    ours: dict[str, list[tuple[float, str]]] = {task: [] for task in TASKS}
    theirs: dict[str, list[tuple[float, str]]] = {task: [] for task in TASKS}
    for row in (row for row in rows if row["method"] != "supervised"):
        for one in (one for one in row["scores"] if is_main(one)):
            ours[one["task"]].append((one["auroc"][0], row["name"]))
    for one in others["rows"]:
        if one["protocol"] == "linear" and "with" not in one.get("data", ""):
            for task, value in one["scores"].items():
                theirs[task].append((value, one["name"]))
    lines = []
    for words, found in (("ours", ours), ("published", theirs)):
        best = [max(found[task], default=(0.0, "")) for task in TASKS]
        lines.append([words, *(f"{value:.3f}, {name}" if name else "" for value, name in best)])
    return lines


def _verdicts(rows: Iterable[dict[str, Any]]) -> str:
    """Say on which tasks each row is above or below its untrained encoder, by intervals that exclude 0."""
    lines = []
    for several in (True, False):
        for row in rows:
            scores = [one for one in row["scores"] if is_main(one)]
            if scores and (min(len(one["seeds"]) for one in scores) > 1) == several:
                above = [one["task"] for one in scores if one["gain"][1] > 0]
                below = [one["task"] for one in scores if one["gain"][2] < 0]
                seeds = "over seeds and patients" if several else "one seed"
                lines.append([row["name"], seeds, _named(above, scores), _named(below, scores)])
    return "\n".join(
        [
            "Above or below the untrained encoder, by an interval that excludes 0. Of one seed, the interval is over "
            "patients only.",
            "",
            *_table(["method, encoder", "interval", "above", "below"], lines),
            "",
        ]
    )


def _once(tables: Sequence[dict[str, Any]]) -> str:
    """Return the scores on a fold that had only trained until then: a line for each row and evaluation."""
    parts = []
    for table in tables:
        fold = table["test_fold"]
        records = table["rows"][0]["records"]
        lines = [
            [row["name"], _protocol(one), one["task"], str(len(one["seeds"])), _cell(one), _largest(one["p"])]
            for row in table["rows"]
            for one in row["scores"]
            if is_main(one) or one["protocol"] != LINEAR
        ]
        parts += [
            f"## Fold {fold}, scored once",
            "",
            f"Fold 10 was scored several times, so that what it showed may have guided a choice. Fold {fold} had only"
            f" trained until then, and all settings were fixed. Here it tests: encoders were"
            f" pre-trained again on the other folds ({records['train']:,} recordings), C was chosen on fold 9"
            f" ({records['validation']:,}), and fold {fold} ({records['test']:,}) was scored by this one call"
            f" ({table['machine']}, {table['date']}):",
            "",
            "```console",
            f"$ {table['command']}",
            "```",
            "",
            "Each score stands with its interval, and with its distance from the untrained encoder. p is that of a"
            f" [permutation test](protocols.md#a-permutation-test) over the patients, with {PERMUTATIONS:,}"
            " permutations; of several seeds, the largest.",
            "",
            *_table(["method, encoder", "protocol", "task", "seeds", "score", "p"], lines),
            "",
        ]
    return "\n".join(parts)


def _protocol(one: dict[str, Any]) -> str:
    return "linear" if one["protocol"] == LINEAR else PROTOCOLS[one["protocol"]]


def _largest(found: Sequence[float | None]) -> str:
    known = [p for p in found if p is not None]
    return f"{max(known):.3f}" if known else ""


def _between(tables: Iterable[dict[str, Any]]) -> str:
    """Say how far a row is above others, where a table says so."""
    parts = []
    for table in (table for table in tables if table.get("against")):
        lines = []
        for name, above in table["above"].items():
            cells = ["{:+.3f} [{:+.3f}, {:+.3f}]".format(*above[task]) if task in above else "" for task in TASKS]
            lines.append([name, *cells])
        parts += [
            f"How far `{table['against']}` is above other rows: the difference of AUROC with its interval, over seeds "
            "and patients, or over patients alone where a row has one seed.",
            "",
            *_table(["method, encoder", *TASKS], lines),
            "",
        ]
    return "\n".join(["## Differences between rows", "", *parts]) if parts else ""


def _named(tasks: Sequence[str], scores: Sequence[dict[str, Any]]) -> str:
    return "every task" if len(tasks) == len(scores) else ", ".join(tasks)


def _other_protocols(rows: Iterable[dict[str, Any]], others: dict[str, Any]) -> str:
    lines = []
    for row in rows:
        for one in row["scores"]:
            if one["protocol"] in PROTOCOLS:
                lines.append([row["name"], PROTOCOLS[one["protocol"]], one["task"], str(len(one["seeds"])), _cell(one)])
    if not lines:
        return ""
    theirs = [[*_their_row(one)[:1], one["protocol"], *_their_row(one)[1:]] for one in others["rows"]]
    theirs = [one for one in theirs if one[1] != "linear"]
    return "\n".join(
        [
            "## Other protocols",
            "",
            *_table(["method, encoder", "protocol", "task", "seeds", "AUROC"], lines),
            "",
            "The control of a fine-tuned encoder is the same encoder fine-tuned from scratch. Other tasks were not"
            " scored by these protocols.",
            "",
            "Published:",
            "",
            *_table(["model", "protocol", "pre-trained on", "parameters", "source", *TASKS], theirs),
            "",
        ]
    )


def _missing(rows: Iterable[dict[str, Any]], asked: Sequence[str]) -> str:
    names = {row["name"] for row in rows}
    missing = [name for name in asked if name not in names]
    if not missing:
        return ""
    listed = "; ".join(missing)
    return f"Not measured on fold 10 yet, of the {len(asked)} rows of `benchmarks/ptbxl.toml`: {listed}.\n"


def _unfinished(tables: Iterable[dict[str, Any]]) -> str:
    """Return the rows that lack a seed or an evaluation."""
    rows = [row["name"] for table in tables for row in table["rows"]]
    failed = [one for table in tables for one in table["failed"]]
    names = [name for name in rows if any(one.startswith(f"{name}, seed ") for one in failed)]
    if not names:
        return ""
    return (
        f"Rows that lack some of their seeds or evaluations, for which time was up (`--until`): {'; '.join(names)}.\n"
    )


def _supervised(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    minutes = sum(found["seconds"].values()) / 60
    line = ["superclass", str(found["best_epoch"]), _cell(found)]
    return "\n".join(
        [
            "## Supervised, by one command",
            "",
            f"All labels of folds 1-8, the settings that the encoder brings along, seed 0; {minutes:.1f} minutes on a"
            f" GPU with other work ({found['machine']}, {found['date']}).",
            "",
            "```console",
            f"$ {found['command']}",
            "```",
            "",
            *_table(["task", "best epoch", "AUROC on fold 10"], [line]),
            "",
        ]
    )


def _choices(tables: Iterable[dict[str, Any]]) -> str:
    """Return what was tried on fold 9: one line for each row and evaluation."""
    lines = []
    for table in tables:
        for row in table["rows"]:
            linear = {one["task"]: one for one in row["scores"] if one["protocol"] == LINEAR}
            if linear:
                cells = [f"{linear[task]['auroc'][0]:.3f}" if task in linear else "" for task in TASKS]
                lines.append([row["name"], "linear", *cells])
            for one in row["scores"]:
                if one["protocol"] in PROTOCOLS:
                    cells = [f"{one['auroc'][0]:.3f}" if task == one["task"] else "" for task in TASKS]
                    lines.append([row["name"], _described(one), *cells])
    if not lines:
        return ""
    kept = [place for place, _ in enumerate(TASKS) if any(line[2 + place] for line in lines)]
    lines = [[*line[:2], *(line[2 + place] for place in kept)] for line in lines]
    return "\n".join(
        [
            "## Chosen on fold 9",
            "",
            "AUROC on fold 9, one seed of each, linear models with C = 0.01. These figures chose settings; they carry"
            " no claim. Fine-tuning was tried with `cpc`; its last line here is used on fold 10."
            " `times per block`: factor of the learning rate from a block of the encoder to the one"
            " before it. The rows were collected from several calls of `benchmarks/ptbxl.py --part validation`, some of"
            " which a limit of time (`--until`) ended.",
            "",
            *_table(["method, encoder", "evaluation", *(TASKS[place] for place in kept)], lines),
            "",
        ]
    )


def _earlier(tables: Iterable[dict[str, Any]]) -> str:
    """Return the first scores of the rows that ran again: one line for each row."""
    lines = []
    for row in (row for table in tables for row in table["rows"]):
        scores = {one["task"]: one for one in row["scores"] if is_main(one)}
        counts = {len(one["seeds"]) for one in scores.values()}
        figures = ["{:.3f} [{:.3f}, {:.3f}]".format(*scores[task]["auroc"]) if task in scores else "" for task in TASKS]
        lines.append([row["name"], " to ".join(str(one) for one in sorted(counts)), *figures])
    if not lines:
        return ""
    return "\n".join(
        [
            "## Earlier scores",
            "",
            "AUROC on fold 10 of a first call, which a limit of time ended, or which had one seed. The rows ran again"
            " with the same settings by a newer version of this code, which is faster. The tables above have the later"
            " scores, whether they are higher or lower.",
            "",
            *_table(["method, encoder", "seeds", *TASKS], lines),
            "",
        ]
    )


def _described(one: dict[str, Any]) -> str:
    """Return an evaluation with those of its settings in which fine-tunings differ."""
    how = one["settings"]
    shown = [f"{words} {how[name]:g}" for name, words in DIFFERING.items() if name in how]
    return ", ".join([PROTOCOLS[one["protocol"]], *shown])


def _fractions(rows: Iterable[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        for task, scores in by_fraction(row).items():
            for one in scores:
                seeds, fraction = str(len(one["seeds"])), f"{100 * one['label_fraction']:g} %"
                lines.append([row["name"], task, seeds, fraction, _cell(one)])
    if not lines:
        return ""
    return "\n".join(
        [
            "## Fewer labels",
            "",
            "The linear model sees the labels of a part of the patients of folds 1-8. C is 0.01 and not chosen, so that"
            " the scores of all patients may differ from those of the first table.",
            "",
            f"![AUROC by the fraction of labels, of each method and of its untrained encoder](pictures/{FRACTIONS})",
            "",
            *_table(["method, encoder", "task", "seeds", "patients with labels", "AUROC"], lines),
            "",
        ]
    )


def _cell(one: dict[str, Any]) -> str:
    (value, low, high), (gain, least, most) = score_of(one), one["gain"]
    return f"{value:.3f} [{low:.3f}, {high:.3f}]; {gain:+.3f} [{least:+.3f}, {most:+.3f}]"


def _their_row(one: dict[str, Any]) -> list[str]:
    figures = [f"{one['scores'][task]:.3f}" if task in one["scores"] else "" for task in TASKS]
    return [one["name"], one.get("data", ""), one.get("parameters", ""), f"({one['source']})", *figures]


def _sources(others: dict[str, Any]) -> str:
    lines = [f"- ({name}) {text}" for name, text in others["sources"].items()]
    return "\n".join(["## Sources", "", *lines, ""])


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines)]


if __name__ == "__main__":
    raise SystemExit(main())
