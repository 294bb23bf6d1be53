"""Instances are counted as a run would train on them, beside the paper's."""

from __future__ import annotations

import csv
from pathlib import Path

import attrs
import counts
import pytest

from clocs_plugins.paper_tables.printed import load_results


def test_instances_are_counted_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On simulated recordings of four leads and two frames each: labelled lead-frames, and pairs of segments."""
    paper = load_results()
    asked = tuple(one for one in paper.counts if one.dataset == "chapman" and one.method in (None, "cmsc", "cmlc"))
    monkeypatch.setattr(counts, "load_results", lambda: attrs.evolve(paper, counts=asked))
    monkeypatch.setattr(counts, "STAND_INS", {"chapman": "demo"})
    assert counts.main(["--data-root", str(tmp_path / "data"), "--out", str(tmp_path / "counts.csv")]) == 0
    rows = list(csv.DictReader((tmp_path / "counts.csv").read_text().splitlines()))
    assert [row["paper"] for row in rows] == [one.printed for one in asked]
    found = {(row["method"], row["part"]): (int(row["instances"]), int(row["patients"])) for row in rows}
    for part in ("train", "validation"):
        assert found["cmsc", part][0] == 2 * found["cmlc", part][0]  # each of four leads, for two frames of all leads
        assert found["cmsc", part][1] == found["cmlc", part][1]
    assert found["", "train"][0] > found["", "test"][0] > 0
