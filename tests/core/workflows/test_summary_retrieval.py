"""Retrieval in a report: every encoder beside chance, in rows and in a sentence that say no more than the numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clocs_core.artifacts.reports import RetrievalRow
from clocs_core.evaluation.features import Features
from clocs_core.report.tables import RETRIEVAL_HEADINGS, retrieval_rows, retrieval_sentence
from clocs_core.workflows.summary import summarise_retrieval

CPU = torch.device("cpu")


def features(spread: float, recordings: int = 2) -> Features:
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(6), 2 * recordings)
    record = np.repeat(np.arange(6 * recordings), 2)
    embedding = np.eye(6)[patient] + spread * rng.normal(size=(len(patient), 6))
    return Features(embedding.astype(np.float32), patient % 3, patient, record)


def row(init: str, relevant: str, nearness: str, recall: float) -> RetrievalRow:
    return RetrievalRow(
        init=init,
        relevant=relevant,
        nearness=nearness,
        recall_at_1=recall,
        recall_at_5=0.5,
        recall_at_10=0.75,
        mean_average_precision=0.25,
        queries=1200,
        left_out=3,
        rows=5000,
    )


def test_every_way_is_there_for_every_encoder_and_for_chance():
    """A recall without what chance finds says nothing: it grows with the number of rows that are right."""
    rows = summarise_retrieval({"m": features(0.01), "random": features(9.0)}, CPU, lambda done, total: None)
    pairs = [("m", "euclidean"), ("random", "euclidean"), ("m", "cosine"), ("random", "cosine"), ("chance", "any")]
    ways = ("same recording", "other recordings", "same diagnosis")
    assert [(one.relevant, one.init, one.nearness) for one in rows] == [(way, *pair) for way in ways for pair in pairs]
    found = {(one.relevant, one.init, one.nearness): one for one in rows}
    assert found["other recordings", "m", "cosine"].mean_average_precision == pytest.approx(1.0)
    chance = found["other recordings", "chance", "any"]
    assert chance.recall_at_1 == pytest.approx(2 / 22)  # 2 rows of the other recording, 20 of strangers
    assert (chance.queries, chance.left_out, chance.rows) == (24, 0, 24)


def test_a_way_without_any_right_row_is_left_out():
    """Where every patient has one recording, nobody can find the others."""
    rows = summarise_retrieval({"m": features(0.01, recordings=1)}, CPU, lambda done, total: None)
    assert {one.relevant for one in rows} == {"same recording", "same diagnosis"}
    assert summarise_retrieval({}, CPU, lambda done, total: None) == ()


def test_a_search_is_a_row():
    (cells,) = retrieval_rows([row("m", "same diagnosis", "cosine", 1 / 3)])
    assert cells == ("same diagnosis", "m", "cosine", "0.333", "0.500", "0.750", "0.250", "1,200", "3")
    assert len(cells) == len(RETRIEVAL_HEADINGS)


def test_the_sentence_has_the_controls_beside_the_method():
    rows = [
        row("m", "other recordings", "euclidean", 0.5),
        row("random", "other recordings", "euclidean", 0.25),
        row("m", "other recordings", "cosine", 0.9),
        row("chance", "other recordings", "any", 0.01),
    ]
    assert retrieval_sentence(rows, "m") == (
        "With m, the nearest row is of the same patient (left out: the recording itself) in 50.0% of 1,200 queries "
        "(random 25.0%, chance 1.0%)."
    )
    assert retrieval_sentence([], "m") == ""
