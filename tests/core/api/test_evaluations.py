"""Evaluation, classifiers and comparison from Python."""

from __future__ import annotations

import pytest
from fake_runs import ARGUMENTS

import clocs_core as clocs

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them


def test_an_evaluation_has_scores_at_every_label_fraction_with_controls(tuned: clocs.EvaluationResults) -> None:
    found = {(row["protocol"], row["init"], row["label_fraction"]) for row in tuned.scores}
    assert found == {
        (protocol, init, fraction)
        for fraction in (0.5, 1.0)
        for protocol, init in (("finetune", "cmsc"), ("finetune", "random"), ("prior", "random"))
    }


def test_a_run_is_evaluated_by_what_evaluates_it_later(run: clocs.Run, data: clocs.Recordings) -> None:
    """Linear evaluation of the same encoder on the same data is the same number, from memory too."""
    drawn = {name: ARGUMENTS[name] for name in ("resamples", "permutations")}
    later = clocs.evaluate(run, data, progress=False, **drawn)
    assert later.record.scores == run.record.scores
    assert later.record.comparisons == run.record.comparisons


def test_an_untrained_encoder_is_evaluated_by_its_name(data: clocs.Recordings) -> None:
    found = clocs.evaluate(None, data, encoder="cnn", embedding_dim=8, resamples=20, device="cpu", progress=False)
    assert {row["init"] for row in found.scores} == {"random"}
