"""Write predictions as a table for people and programs: a row per recording or frame, a named column per class."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clocs_core.contracts.kinds import kind_of
from clocs_core.files import write_atomically
from clocs_core.inference.predicted import Predicted
from clocs_core.report.tables import show_number
from clocs_core.report.visible import as_cell

SCHEMA = 1  # version of the .npz and .json files: raised when a field changes its meaning
ENDINGS = (".csv", ".npz", ".json")
_FEW = 6  # classes that have a column each in a terminal; with more, only the likeliest are named


def save_predicted(found: Predicted, about: Mapping[str, object], path: Path) -> None:
    """Write all rows atomically, in the format of the file's ending. `about` goes into .npz and .json."""
    writers: dict[str, Callable[[Predicted, Mapping[str, object]], str | bytes]]
    writers = {".csv": _as_csv, ".npz": _as_npz, ".json": _as_json}
    write_atomically(path, writers[path.suffix.lower()](found, {"schema": SCHEMA, "level": found.level, **about}))


def shown_rows(found: Predicted, most: int) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headings and the first rows for a terminal. With many classes, the three likeliest share a column."""
    columns, classes = found.columns(), found.task.outputs
    few = len(classes) <= _FEW
    rows = []
    for number, probability in enumerate(found.probability[:most]):
        said = [str(column[number]) for column in columns.values()]
        rows.append((*said, *map(show_number, probability)) if few else (*said, _likeliest(probability, classes)))
    return (*columns, *(classes if few else ("most likely",))), tuple(rows)


def _likeliest(probability: NDArray[np.float64], classes: tuple[str, ...]) -> str:
    first = np.argsort(-probability, kind="stable")[:3]
    return ", ".join(f"{classes[one]} {show_number(probability[one])}" for one in first)


def _as_csv(found: Predicted, _about: Mapping[str, object]) -> str:
    text = StringIO()
    write = csv.writer(text, lineterminator="\n")
    columns = found.columns()
    headings = [*columns, *(f"class {name}" if name in columns else name for name in found.task.outputs)]
    write.writerow(map(as_cell, headings))
    rows = zip(*columns.values(), found.probability, strict=True)
    # Seven digits: float32 has no more.
    write.writerows([*map(as_cell, names), *(f"{value:.7g}" for value in probability)] for *names, probability in rows)
    return text.getvalue()


def _as_npz(found: Predicted, about: Mapping[str, object]) -> bytes:
    buffer = BytesIO()
    np.savez_compressed(
        buffer,
        allow_pickle=False,
        probability=found.probability,
        classes=np.array(found.task.outputs, dtype=np.str_),
        about=np.array(json.dumps(about, ensure_ascii=False)),
        **found.columns(),
    )
    return buffer.getvalue()


def _as_json(found: Predicted, about: Mapping[str, object]) -> str:
    columns, classes = {name: one.tolist() for name, one in found.columns().items()}, found.task.outputs
    predicted = kind_of(found.task).predicted
    rows = [
        {**dict(zip(columns, names, strict=True)), predicted: dict(zip(classes, probability, strict=True))}
        for *names, probability in zip(*columns.values(), found.probability.tolist(), strict=True)
    ]
    held = {**about, "classes": classes, "rows": rows}
    return json.dumps(held, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
