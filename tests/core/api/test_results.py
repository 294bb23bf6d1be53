"""Results of a run, as tables and in a notebook."""

from __future__ import annotations

import attrs
import numpy as np
from clinical_records import clinical

import clocs_core as clocs
from clocs_core.api.results import Results


def test_a_run_has_history_encoder_and_report(run: clocs.Run) -> None:
    assert run.history["epoch"] == [1, 2]
    assert run.record.settings["loss"]["temperature"] == 0.05
    assert {row["init"] for row in run.report.scores} == {"cmsc", "random"}
    assert list(run.history.to_pandas()["epoch"]) == [1, 2]
    assert run.encoder.embed(np.zeros((1, 400)) + np.arange(400), sampling_rate=50).embedding.shape == (2, 1, 8)
    assert run.report.verdict in repr(run.report)
    assert "<table>" in run.report._repr_html_()


def test_classes_and_worst_recordings_are_tables(run: clocs.Run) -> None:
    assert set(run.report.classes["init"]) == {"cmsc", "random"}
    held = Results(attrs.evolve(run.record, clinical=clinical()))
    first = next(iter(held.classes))
    assert [first[name] for name in ("init", "name", "auroc", "auroc_low", "rows")] == ["mine", "a", 0.8, 0.7, 1234]
    assert held.classes["note"][-1] == "no test recording has it"
    assert held.worst["record"] == ["r1"]
    nothing = Results(attrs.evolve(run.record, clinical=None))
    assert len(nothing.classes) == len(nothing.worst) == 0
