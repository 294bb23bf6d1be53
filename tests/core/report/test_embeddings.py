"""Embeddings as a table: every digit, and no name that a spreadsheet would compute."""

from __future__ import annotations

import csv
from pathlib import Path

import attrs
import numpy as np

from clocs_core.artifacts.embeddings import NamedRows
from clocs_core.report.embeddings import save_table


def test_a_table_has_the_names_and_every_digit_of_the_embeddings(tmp_path: Path) -> None:
    embedding = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    names = {field.name: np.array(["a", "=b()", "c,d"]) for field in attrs.fields(NamedRows)}
    save_table(NamedRows(**{**names, "embedding": embedding, "start": np.arange(3)}), tmp_path / "z.csv")
    with (tmp_path / "z.csv").open(encoding="utf-8", newline="") as file:
        heading, *rows = csv.reader(file)
    assert heading == ["patient", "record", "channel", "start", "part", "label", "e0", "e1", "e2", "e3"]
    assert [row[:4] for row in rows] == [["a", "a", "a", "0"], ["'=b()"] * 3 + ["1"], ["c,d"] * 3 + ["2"]]
    np.testing.assert_array_equal(np.array([row[6:] for row in rows], dtype=np.float32), embedding)
