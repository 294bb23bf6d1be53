"""Which pictures a report has, and in which order; how each is drawn is tested beside the figures."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from clocs_core.report import pictures


@pytest.fixture(autouse=True)
def _drawn_by_name(monkeypatch):
    """Figures that are only their name and what they are of."""
    for name in ("loss_curves", "health_curves", "score_bars", "embedding_map", "distance_histogram"):
        monkeypatch.setattr(pictures.figures, name, lambda *of, name=name: (name, *of))


def drawn(scores=("score",), distances="distances", has_labels=True):
    report = SimpleNamespace(best_epoch=3, scores=scores)
    return pictures.draw_pictures("rows", report, "embeddings", distances, "views", has_labels)


LABELS, SCORES, DISTANCES = ("embedding_map", "embeddings", "label"), ("score_bars", ("score",)), "distance_histogram"


def test_a_run_with_labels_has_every_picture_in_the_order_of_the_page():
    assert drawn() == [
        ("loss_curves", "rows", 3),
        ("health_curves", "rows"),
        SCORES,
        LABELS,
        ("embedding_map", "embeddings", "patient"),
        (DISTANCES, "distances"),
        "views",
    ]


@pytest.mark.parametrize(
    ("lack", "missing"),
    [({"scores": ()}, SCORES), ({"has_labels": False}, LABELS), ({"distances": None}, (DISTANCES, "distances"))],
    ids=["no scores", "no labels", "no distances"],
)
def test_what_a_run_does_not_have_is_not_drawn(lack, missing):
    assert drawn(**lack) == [one for one in drawn() if one != missing]
