"""Results of a run, as tables and in a notebook."""

from __future__ import annotations

import numpy as np

import clocs_core as clocs


def test_a_run_has_history_encoder_and_report(run: clocs.Run) -> None:
    assert run.history["epoch"] == [1, 2]
    assert run.record.settings["loss"]["temperature"] == 0.05
    assert {row["init"] for row in run.report.scores} == {"cmsc", "random"}
    assert list(run.history.to_pandas()["epoch"]) == [1, 2]
    assert run.encoder.embed(np.zeros((1, 400)) + np.arange(400), sampling_rate=50).embedding.shape == (2, 1, 8)
    assert run.report.verdict in repr(run.report)
    assert "<table>" in run.report._repr_html_()
