"""The part of the page of results on PTB-XL for a fold that had only trained, and so has guided no choice."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from ptbxl_cells import as_table, protocol_words, score_cell
from ptbxl_rows import LINEAR
from ptbxl_scores import PERMUTATIONS, is_main


def other_fold_part(tables: Sequence[dict[str, Any]], printed: Sequence[dict[str, Any]] = ()) -> str:
    """Return the scores on such a fold: a line for each row and evaluation.

    printed: scores that a call printed whose files were lost, so that they have no intervals.
    """
    parts = []
    for table in tables:
        fold = table["test_fold"]
        records = table["rows"][0]["records"]
        lines = [
            [row["name"], protocol_words(one), one["task"], str(len(one["seeds"])), score_cell(one), _largest(one["p"])]
            for row in table["rows"]
            for one in _with_all_labels(row)
        ]
        parts += [
            f"## Fold {fold}, which guided no choice",
            "",
            f"Fold 10 was scored several times, so that what it showed may have guided a choice. Fold {fold} had only"
            f" trained until then, and all settings were fixed. Here it tests: encoders were"
            f" pre-trained again on the other folds ({records['train']:,} recordings{_trained_on(table)}), C was chosen"
            f" on fold 9 ({records['validation']:,}), and fold {fold} ({records['test']:,}) was scored"
            f" ({table['machine']}, {table['date']}). This command repeats it:",
            "",
            "```console",
            f"$ {table['command']}",
            "```",
            "",
            "Each score stands with its interval, and with its distance from the untrained encoder. p is that of a"
            f" [permutation test](protocols.md#a-permutation-test) over the patients, with {PERMUTATIONS:,}"
            " permutations; of several seeds, the largest.",
            "",
            *as_table(["method, encoder", "protocol", "task", "seeds", "score", "p"], lines),
            "",
            *(line for one in printed if one["test_fold"] == fold for line in _printed(one, table)),
        ]
    return "\n".join(parts)


def _with_all_labels(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the scores of a row without those by label fraction, whose C was not chosen."""
    return [one for one in row["scores"] if is_main(one) or one["protocol"] != LINEAR]


def _trained_on(table: dict[str, Any]) -> str:
    """Name the machines of the pre-trainings, where the table says them."""
    machines = sorted({one for row in table["rows"] for one in row.get("pretrained_on", ())})
    return "; " + ", ".join(machines) if machines else ""


def _printed(lost: dict[str, Any], table: dict[str, Any]) -> Iterator[str]:
    """Yield what a call printed whose files were lost, and how far it is from the scores of the table."""
    lines = [
        [row["name"], protocol_words(one), _task(one), str(len(one["seeds"])), _spread(one["seeds"])]
        for row in lost["rows"]
        for one in row["scores"]
    ]
    both = list(_both(lost, table))
    yield from (
        "A first call had scored more rows and protocols, with the same settings. Its machine ended before the files"
        f" were copied, so that there is only what it printed, for each seed and without intervals ({lost['machine']},"
        f" {lost['date']}). The encoders of the table above were pre-trained anew after that."
        f" The largest of the {len(both)} differences between the two is {max(both):.4f}.",
        "",
        "```console",
        f"$ {lost['command']}",
        "```",
        "",
        *as_table(["method, encoder", "protocol", "task", "seeds", "mean ± sd over seeds"], lines),
        "",
    )


def _both(lost: dict[str, Any], table: dict[str, Any]) -> Iterator[float]:
    """Yield how far the printed scores are from those of the table, for every seed that both have."""
    there = {
        (row["name"], one["protocol"], one["task"]): one["seeds"]
        for row in table["rows"]
        for one in _with_all_labels(row)
    }
    for row in lost["rows"]:
        for one in (score for score in row["scores"] if score["label_fraction"] == 1):
            again = there.get((row["name"], one["protocol"], one["task"]), [])
            yield from (abs(a - b) for a, b in zip(one["seeds"], again, strict=False))


def _task(one: dict[str, Any]) -> str:
    """Name a task, and how much of its labels is used where that is not all."""
    fraction = one["label_fraction"]
    return str(one["task"]) if fraction == 1 else f"{one['task']}, {100 * fraction:g} % of labels"


def _spread(seeds: Sequence[float]) -> str:
    return f"{statistics.mean(seeds):.3f} ± {statistics.stdev(seeds):.3f}"


def _largest(found: Sequence[float | None]) -> str:
    known = [p for p in found if p is not None]
    return f"{max(known):.3f}" if known else ""
