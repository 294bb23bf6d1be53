"""Write embeddings as a table: a row per frame, with its names, and a column per dimension."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import attrs

from clocs_core.artifacts.embeddings import NamedRows
from clocs_core.files import write_atomically
from clocs_core.report.visible import as_cell


def save_table(rows: NamedRows, path: Path) -> None:
    """Write a .csv file: patient, record, channel, start, part, label, then the embedding as e0, e1, …"""
    names = [field.name for field in attrs.fields(NamedRows) if field.name != "embedding"]
    text = StringIO()
    write = csv.writer(text, lineterminator="\n")
    write.writerow([*names, *(f"e{place}" for place in range(rows.embedding.shape[1]))])
    columns = [getattr(rows, name).tolist() for name in names]
    for *named, embedding in zip(*columns, rows.embedding, strict=True):
        write.writerow([*map(as_cell, named), *(f"{value:.9g}" for value in embedding)])  # 9 digits: all of float32
    write_atomically(path, text.getvalue())
