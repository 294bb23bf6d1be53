"""Pictures of the page of PTB-XL change with the figures that they show, and are left out without any."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import ptbxl_pictures
import pytest


def score(task: str, fraction: float, base: float, chosen: bool = True) -> dict[str, Any]:
    figures = {name: [value, value - 0.01, value + 0.01] for name, value in (("auroc", base), ("random", base - 0.1))}
    return {"protocol": "linear-record", "task": task, "label_fraction": fraction, "chosen": chosen, **figures}


ROW: dict[str, Any] = {
    "name": "cpc, s4d",
    "scores": [
        score("all", 1.0, 0.9),
        score("rhythm", 1.0, 0.95),
        *(score("all", fraction, 0.7 + fraction / 10, chosen=False) for fraction in (1.0, 0.01, 0.1)),
    ],
}
OTHERS: list[dict[str, Any]] = [
    {"name": "A", "protocol": "linear", "scores": {"all": 0.93}},
    {"name": "B, supervised", "protocol": "linear", "scores": {"all": 0.97}},
    {"name": "C", "protocol": "fine-tuned", "scores": {"all": 0.96}},
]


def overview(row: dict[str, Any]) -> bytes | None:
    return ptbxl_pictures.overview([row], OTHERS)


def by_labels(row: dict[str, Any]) -> bytes | None:
    return ptbxl_pictures.label_efficiency([row])


@pytest.mark.parametrize(("draw", "place"), [(overview, 1), (by_labels, 3)])
@pytest.mark.parametrize("which", ["auroc", "random"])
def test_a_picture_shows_its_figures(draw: Callable[[dict[str, Any]], bytes | None], place: int, which: str) -> None:
    drawn = draw(ROW)
    assert drawn is not None
    assert drawn.startswith(b"\x89PNG")
    other = copy.deepcopy(ROW)
    other["scores"][place][which][0] += 0.02
    assert draw(other) != drawn


def test_pictures_without_figures_are_left_out() -> None:
    assert overview({**ROW, "scores": ROW["scores"][2:]}) is None  # label fractions are drawn in the other one
    assert by_labels({**ROW, "scores": ROW["scores"][:3]}) is None  # one fraction is no curve


def test_a_line_shows_the_best_published_linear_score_without_labels() -> None:
    drawn = overview(ROW)
    assert ptbxl_pictures.overview([ROW], OTHERS[:1]) == drawn
    assert ptbxl_pictures.overview([ROW], OTHERS[1:]) != drawn
