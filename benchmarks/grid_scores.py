"""The scores of a grid's ledger as a table of one line a score, small enough to keep with the source.

    python benchmarks/grid_scores.py runs/grid --out benchmarks/results/grid/scores.csv

Of every evaluation that is done, the scores of its own encoder; those of the untrained one are the lines of `random`,
once for each repetition. No prediction of a recording is in it.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from grid.ledger import Entry, Ledger

from clocs_core.errors import ClocsError
from clocs_core.files import write_atomically

COLUMNS = (
    *("method", "pretraining", "leads", "embedding_dim", "downstream", "protocol", "label_fraction", "options"),
    *("split", "seed", "part", "metric", "level", "score", "commit"),
)

Row = tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table of some ledgers together. Returns 0, or 2 for a mistake."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", nargs="+", type=Path, help="folders of grids, or their ledgers")
    parser.add_argument("--out", type=Path, required=True, help="the .csv file to write")
    given = parser.parse_args(arguments)
    try:
        rows = sorted({row for path in given.grid for row in _rows(_entries(path))})
        write_atomically(given.out, as_csv(rows).encode())
    except ClocsError as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 2
    print(f"{len(rows):,} scores: {given.out}")
    return 0


def as_csv(rows: Iterable[Row]) -> str:
    """Rows under their headings."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *rows])
    return text.getvalue()


def _entries(path: Path) -> tuple[Entry, ...]:
    return Ledger(path if path.is_file() else path / "ledger.jsonl").read().entries


def _rows(entries: Iterable[Entry]) -> Iterator[Row]:
    for entry in entries:
        if entry.status == "done" and not entry.protocol.startswith("pretrain"):
            yield from _rows_of(entry)


def _rows_of(entry: Entry) -> Iterator[Row]:
    settings = entry.settings
    run = settings["pretraining"]
    for score in entry.scores:
        if score.protocol != settings["protocol"]:
            continue  # the class prior
        untrained = score.init == "random"
        # What is not pre-trained depends on no pre-training set and on none of its options.
        about = ("random", "") if untrained else (" ".join([run["method"], *run["options"]]), run["dataset"])
        yield (
            *(*about, run["leads"], str(run["embedding_dim"]), settings["downstream"], settings["protocol"]),
            *(f"{score.label_fraction:g}", " ".join(settings["options"])),
            *(str(run["split_seed"]), str(run["seed"]), settings["part"], score.metric, score.level),
            *(f"{score.value:.6f}", entry.commit),
        )


if __name__ == "__main__":
    raise SystemExit(main())
