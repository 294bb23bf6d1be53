"""Count the instances of every data set and part, beside tables 3 and 4 of the paper.

    python benchmarks/counts.py --data-root DATA --out benchmarks/results/counts.csv

Table 3 has the instances that a method pre-trains on, table 4 the labelled frames (and patients) of a downstream task.
PTB-XL stands in for Chapman and PhysioNet 2020, so that its counts are of other recordings.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from clocs_core.artifacts.split import PARTS
from clocs_core.data.cohort import Cohort
from clocs_core.evaluation.labelled_frames import list_labelled_frames
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.session import installed_session
from clocs_core.train.normalise import leave
from clocs_core.workflows import training as stages
from clocs_core.workflows.surroundings import Surroundings
from clocs_plugins.paper_tables.printed import Count, load_results

COLUMNS = ("table", "of_the_paper", "dataset", "method", "part", "instances", "patients", "paper")
STAND_INS = {"chapman": "ptbxl", "physionet2020": "ptbxl"}

Row = tuple[str, ...]


def count_rows(data_root: str, stand_ins: dict[str, str]) -> Iterator[Row]:
    """Count what each cell of the two tables counts, on the data at hand."""
    found: dict[tuple[str, str], stages.Ready] = {}
    for printed in load_results().counts:
        dataset = stand_ins.get(printed.dataset, printed.dataset)
        method = printed.method or "supervised"
        if (dataset, method) not in found:
            found[dataset, method] = _prepare(dataset, method, data_root)
        yield _row(printed, dataset, found[dataset, method])


def _row(printed: Count, dataset: str, ready: stages.Ready) -> Row:
    part = next(part for part in PARTS if part == printed.part)
    if printed.method is None:
        instances, patients = _labelled(ready.cohort)[part]
    else:
        instances, patients = len(ready.instances[part]), ready.cohort.split.counts()[part]
    about = (printed.printed_in, printed.dataset, dataset, printed.method or "")
    return (*about, printed.part, str(instances), str(patients), printed.printed)


def _labelled(cohort: Cohort) -> dict[str, tuple[int, int]]:
    frames = list_labelled_frames(cohort, False, leave, torch.device("cpu"))
    return {part: (len(rows.label), len(set(rows.patient.tolist()))) for part, rows in frames.rows.items()}


def _prepare(dataset: str, method: str, data_root: str) -> stages.Ready:
    session = installed_session()
    leads = ["channels=4"] if session.catalogue.datasets.get(dataset).offer.presets else []
    tables: dict[str, dict[str, object]] = {"run": {"method": method, "dataset": dataset}}
    plan = resolve(session.catalogue, tables, [f"data_root={data_root}", "device=cpu", *leads])
    return stages.prepare_run(plan, Surroundings(host=session.host))


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", required=True, help="holds one folder per data set, and prepared frames")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    given = parser.parse_args(arguments)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *count_rows(str(Path(given.data_root).absolute()), STAND_INS)])
    given.out.write_text(text.getvalue(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
