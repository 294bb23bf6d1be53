"""The name of an untrained encoder has all that its score depends on, beside the task."""

from __future__ import annotations

import attrs

from clocs_core.artifacts.reports import EncoderSummary, EvaluationReport, SplitSummary
from clocs_core.grids.untrained import is_of, say_encoder, say_untrained

ENCODER = EncoderSummary(name="cnn", dataset="d", inputs=1, frame_samples=2500, embedding_dim=8, sha256="")
REPORT = EvaluationReport(
    protocol="linear",
    how="",
    init="cmsc",
    encoder=ENCODER,
    dataset="d",
    task="rhythm",
    part="test",
    seed=0,
    settings={"data": {"normalise": "min-max", "channels": ["II"]}},
    split=SplitSummary(
        hash="a", rule="60/20/20", seed=0, patients={}, frames={}, records={}, shared_patients=0, duplicate_signals=0
    ),
    environment={},
)


def test_architecture_input_and_normalisation_are_named() -> None:
    assert say_encoder(REPORT) == "encoder=cnn frame_samples=2500 normalise=min-max"
    joint = attrs.evolve(ENCODER, name="resnet1d", inputs=12, options={"width": 32, "depth": 2})
    named = "encoder=resnet1d depth=2 width=32 channels_at_once=12 frame_samples=2500 normalise=min-max"
    assert say_encoder(attrs.evolve(REPORT, encoder=joint)) == named


def test_whatever_changes_an_untrained_encoder_changes_its_name() -> None:
    """Weights and data set of a pre-training are no part of it."""
    changes = [{"name": "other"}, {"inputs": 2}, {"frame_samples": 100}, {"options": {"width": 8}}]
    names = {say_encoder(attrs.evolve(REPORT, encoder=attrs.evolve(ENCODER, **one))) for one in changes}
    names |= {say_encoder(attrs.evolve(REPORT, settings={"data": {"normalise": "z-score"}})), say_encoder(REPORT)}
    assert len(names) == 6
    trained = attrs.evolve(ENCODER, sha256="abc", dataset="other")
    assert say_encoder(attrs.evolve(REPORT, encoder=trained, init="simclr")) == say_encoder(REPORT)


def test_filters_a_constant_and_labels_are_named_where_they_are_set() -> None:
    """One line stood for all rows, and was the number of whichever came first."""
    unset = {"data": {"normalise": "constant", "constant": "none"}, "framing": {"band_pass": "none", "notch": "none"}}
    assert say_encoder(attrs.evolve(REPORT, settings=unset)) == "encoder=cnn frame_samples=2500 normalise=constant"
    held = {
        "data": {"normalise": "constant", "constant": 0.2},
        "framing": {"band_pass": [5.0, 15.0], "notch": "none"},
        "dataset": {"labels": "/home/me/other.csv", "patients": 24},
    }
    assert say_encoder(attrs.evolve(REPORT, settings=held)).endswith(
        "normalise=constant constant=0.2 band_pass=5.0,15.0 labels=other.csv"
    )


def test_a_file_that_does_not_say_it_has_the_plain_name() -> None:
    assert say_untrained("") == "random"
    assert say_untrained("encoder=cnn") == "random encoder=cnn"


def test_an_architecture_is_told_by_its_whole_name() -> None:
    assert is_of("encoder=cnn frame_samples=8", "cnn")
    assert not is_of("encoder=cnn2 frame_samples=8", "cnn")
    assert is_of("", "cnn")  # an older file does not say it
    assert is_of("encoder=cnn frame_samples=8", "")
