"""The other parts of the page of results on PTB-XL: other protocols, label fractions, choices, earlier scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptbxl_cells import PROTOCOLS, as_table, published_cells, score_cell
from ptbxl_rows import LINEAR, TASKS
from ptbxl_scores import by_fraction, is_main

FRACTIONS = "label-efficiency.png"
"""Picture of the scores by label fraction."""
DIFFERING = {
    "epochs": "epochs",
    "batch_size": "batch",
    "learning_rate": "learning rate",
    "layer_decay": "times per block",
}
"""Settings of a fine-tuning that the page names, and its words for them."""


def protocols_part(rows: Iterable[dict[str, Any]], others: dict[str, Any]) -> str:
    """Return the scores by protocols other than the linear one, ours and published."""
    lines = []
    for row in rows:
        for one in row["scores"]:
            if one["protocol"] in PROTOCOLS:
                lines.append(
                    [row["name"], PROTOCOLS[one["protocol"]], one["task"], str(len(one["seeds"])), score_cell(one)]
                )
    if not lines:
        return ""
    theirs = [[*published_cells(one)[:1], one["protocol"], *published_cells(one)[1:]] for one in others["rows"]]
    theirs = [one for one in theirs if one[1] != "linear"]
    return "\n".join(
        [
            "## Other protocols",
            "",
            *as_table(["method, encoder", "protocol", "task", "seeds", "AUROC"], lines),
            "",
            "The control of a fine-tuned encoder is the same encoder fine-tuned from scratch. Other tasks were not"
            " scored by these protocols.",
            "",
            "Published:",
            "",
            *as_table(["model", "protocol", "pre-trained on", "parameters", "source", *TASKS], theirs),
            "",
        ]
    )


def supervised_part(found: dict[str, Any] | None) -> str:
    """Return the score of the supervised run."""
    if found is None:
        return ""
    minutes = sum(found["seconds"].values()) / 60
    line = ["superclass", str(found["best_epoch"]), score_cell(found)]
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
            *as_table(["task", "best epoch", "AUROC on fold 10"], [line]),
            "",
        ]
    )


def choices_part(tables: Iterable[dict[str, Any]]) -> str:
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
            "AUROC on fold 9, one seed of each, linear models with C = 0.01. Settings were chosen by these scores. No"
            " conclusion is drawn from them. Fine-tuning was tried with `cpc`; its last line here is used on fold 10."
            " `times per block`: factor of the learning rate from a block of the encoder to the one"
            " before it. The rows were collected from several calls of `benchmarks/ptbxl.py --part validation`, some of"
            " which a limit of time (`--until`) ended.",
            "",
            *as_table(["method, encoder", "evaluation", *(TASKS[place] for place in kept)], lines),
            "",
        ]
    )


def earlier_part(tables: Iterable[dict[str, Any]]) -> str:
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
            *as_table(["method, encoder", "seeds", *TASKS], lines),
            "",
        ]
    )


def _described(one: dict[str, Any]) -> str:
    """Return an evaluation with those of its settings in which fine-tunings differ."""
    how = one["settings"]
    shown = [f"{words} {how[name]:g}" for name, words in DIFFERING.items() if name in how]
    return ", ".join([PROTOCOLS[one["protocol"]], *shown])


def fractions_part(rows: Iterable[dict[str, Any]]) -> str:
    """Return the scores by label fraction."""
    lines = []
    for row in rows:
        for task, scores in by_fraction(row).items():
            for one in scores:
                seeds, fraction = str(len(one["seeds"])), f"{100 * one['label_fraction']:g} %"
                lines.append([row["name"], task, seeds, fraction, score_cell(one)])
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
            *as_table(["method, encoder", "task", "seeds", "patients with labels", "AUROC"], lines),
            "",
        ]
    )
