"""Evaluation, classifiers and comparison from Python."""

from __future__ import annotations

import pytest
from fake_recordings import recordings_in_memory
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


@pytest.mark.parametrize("normalise", ["constant", "none"])
def test_the_same_signals_in_another_unit_have_the_same_scores(normalise: str) -> None:
    """A factor of 1000 on the way into a network would be another signal; one that does not convert is told."""
    drawn = {name: ARGUMENTS[name] for name in ("resamples", "permutations")}
    trained = clocs.pretrain("cmsc", recordings_in_memory(unit="mV"), **{**ARGUMENTS, "normalise": normalise})

    def evaluated(scale: float, unit: str) -> clocs.EvaluationResults:
        recordings = recordings_in_memory(scale=scale, unit=unit)
        return clocs.evaluate(trained.encoder, recordings, progress=False, **drawn)

    same, micro, other = evaluated(1.0, "mV"), evaluated(1000.0, "uV"), evaluated(1000.0, "mmHg")
    assert [row["value"] for row in micro.scores] == pytest.approx([row["value"] for row in same.scores], abs=1e-3)
    converted = "Signals are in uV and the encoder was trained on mV; they were converted."
    assert converted in micro.record.notes
    assert converted not in same.record.notes
    assert any("in mV, and these are in mmHg: " in note for note in other.record.notes)
    used = [one.record.settings["data"]["constant"] for one in (same, micro)]
    expected = 1.0 if normalise == "none" else used[0]
    assert used[1] == pytest.approx(1000 * expected)


def test_an_untrained_encoder_is_evaluated_by_its_name(data: clocs.Recordings) -> None:
    found = clocs.evaluate(None, data, encoder="cnn", embedding_dim=8, resamples=20, device="cpu", progress=False)
    assert {row["init"] for row in found.scores} == {"random"}
