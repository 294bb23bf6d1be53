"""Which pictures a report has; how each is drawn is tested beside the figures."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clocs_core.report import class_figures, figures, pictures, traces


@pytest.fixture(autouse=True)
def _drawn_by_name(monkeypatch):
    """Figures that are only their name and what they are of."""
    for name in ("loss_curves", "health_curves", "score_bars", "embedding_map", "distance_histogram"):
        monkeypatch.setattr(figures, name, lambda *of, name=name: (name, *of))
    for name in ("class_curves", "predicted_against_true"):
        monkeypatch.setattr(class_figures, name, lambda of, name=name: (name, of) if name in of else None)
    monkeypatch.setattr(traces, "traces", lambda *of: ("traces", *of))


LABELS, PATIENTS = ("embedding_map", "embeddings", "label"), ("embedding_map", "embeddings", "patient")
DISTANCES = ("distance_histogram", "distances")


def test_a_training_has_curves_of_its_loss_and_of_its_health():
    assert pictures.draw_training("rows", 3) == [("loss_curves", "rows", 3), ("health_curves", "rows")]


def test_scores_are_drawn_where_there_are_any():
    assert pictures.draw_scores(("score",)) == [("score_bars", ("score",))]
    assert pictures.draw_scores(()) == []


@pytest.mark.parametrize(
    ("distances", "has_labels", "expected"),
    [
        ("distances", True, [LABELS, PATIENTS, DISTANCES]),
        ("distances", False, [PATIENTS, DISTANCES]),
        (None, True, [LABELS, PATIENTS]),
    ],
    ids=["all", "no labels", "no distances"],
)
def test_embeddings_are_drawn_by_label_and_patient_and_with_their_distances(distances, has_labels, expected):
    assert pictures.draw_embeddings("embeddings", distances, has_labels) == expected


def test_views_are_drawn_as_they_are_given():
    assert pictures.draw_views("signal", "titles", "views", 100.0, 4) == [
        ("traces", "signal", "titles", "views", 100.0, 4)
    ]


@pytest.mark.parametrize("kind", ["class_curves", "predicted_against_true"])
def test_classes_are_drawn_or_numbers(kind):
    assert pictures.draw_classes([kind]) == [(kind, [kind])]
    assert pictures.draw_classes([]) == []


def test_what_draws_in_another_process_imports_no_torch_and_the_run_no_matplotlib():
    """Either takes seconds, for which a report would wait."""
    other = (
        "import clocs_core.workflows.drawing as drawing, sys; drawing.end_with = print; drawing._begin_worker(1); "
        "assert 'torch' not in sys.modules"
    )
    run = "import clocs_core.workflows.pretrain, sys; assert 'matplotlib' not in sys.modules"
    for code in (other, run):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
