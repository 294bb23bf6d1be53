"""The report of an evaluation: it reads back exactly, and the page about it lists what it holds."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import attrs
import pytest

from clocs_core.artifacts.curves import CurvePoint
from clocs_core.artifacts.documents import dump_record, load_record
from clocs_core.artifacts.reports import CellSummary, Curve, EncoderSummary, EvaluationReport, SplitSummary
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError

PAGE = (Path(__file__).parents[3] / "docs" / "protocols.md").read_text(encoding="utf-8")


def report():
    return EvaluationReport(
        protocol="finetune",
        how="all weights train",
        init="method",
        encoder=EncoderSummary(
            name="flat", dataset="tiny", inputs=1, frame_samples=50, embedding_dim=8, sha256="0" * 64
        ),
        dataset="many",
        task="parity",
        part="test",
        seed=3,
        settings={"evaluation": {"seed": 3, "label_fraction": (0.5, 1.0)}},
        split=SplitSummary("abc", "60/20/20", 0, {"train": 3}, {"train": 30}, {"train": 4}, 0, 0),
        environment={"clocs": "0"},
        scores=(Score("finetune", "method", "many", 0.5, "auroc", "frame", 1 / 3, math.nan, 0.1 + 0.2),),
        cells=(CellSummary(protocol="finetune", init="method", label_fraction=0.5, steps=7, notes=("few",)),),
        curves=(
            Curve(
                protocol="finetune",
                init="method",
                label_fraction=0.5,
                metric="auroc",
                values=(CurvePoint(1, 0.1 + 0.2, 1 / 3, 0.7), CurvePoint(2, 1.0, 1.0, math.nan)),
            ),
        ),
        seconds={"train": 1.5},
    )


def test_what_is_written_is_read_back_to_the_last_bit():
    found = load_record(dump_record(report()), EvaluationReport, "report.json")
    assert dump_record(found) == dump_record(report())
    assert found.scores[0].value == 1 / 3
    assert math.isnan(found.scores[0].low)
    assert found.cells == report().cells
    assert found.curves[0].values[0] == report().curves[0].values[0]
    assert math.isnan(found.curves[0].values[1].validation_score)
    assert found.settings["evaluation"]["label_fraction"] == [0.5, 1.0]


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 1}', dump_record(report())[:200]])
def test_a_damaged_report_is_named(text):
    with pytest.raises(RunFolderError, match=r"here/report\.json"):
        load_record(text, EvaluationReport, "here/report.json")


def test_another_schema_is_refused():
    other = dump_record(attrs.evolve(report(), schema=7))
    with pytest.raises(RunFolderError, match="has schema 7, this version of clocs reads 1"):
        load_record(other, EvaluationReport, "report.json")


def test_a_report_of_before_curves_were_kept_is_read():
    """Evaluations take hours; what was found stays readable."""
    document = json.loads(dump_record(report()))
    del document["curves"], document["digest"]
    assert load_record(json.dumps(document), EvaluationReport, "report.json").curves == ()


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("### report.json", EvaluationReport),
        ("### cells", CellSummary),
        ("### curves", Curve),
        ("### values", CurvePoint),
    ],
)
def test_the_page_lists_every_field(heading, kind):
    """Whoever reads the file with a program has nothing else to go by."""
    section = re.split(r"^#+ ", PAGE.partition(f"\n{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    assert re.findall(r"^\| `([^`]+)` \|", section, flags=re.MULTILINE) == [field.name for field in attrs.fields(kind)]
