"""The page of results on PTB-XL has every figure that was measured, and those that others published."""

from __future__ import annotations

import copy
from typing import Any

import ptbxl
import ptbxl_page
import pytest

TASKS = ("all", "superclass")


def score(
    task: str, fraction: float, base: float, protocol: str = "linear-record", chosen: bool = True
) -> dict[str, Any]:
    return {
        "protocol": protocol, "task": task, "label_fraction": fraction, "chosen": chosen, "seeds": [base, base],
        "auroc": [base, base - 0.01, base + 0.01], "random": [base - 0.1, base - 0.12, base - 0.08],
        "gain": [0.1, 0.08, 0.12],
    }  # fmt: skip


ROW = {
    "name": "cpc, s4d",
    "parameters": 3_400_000,
    "pretrain_seconds": [60.0, 120.0],
    "scores": [
        *(score(task, 1.0, 0.9) for task in TASKS),
        *(score("all", fraction, 0.7 + fraction / 10, chosen=False) for fraction in (1.0, 0.01, 0.1)),
        score("superclass", 1.0, 0.93, "finetune"),
    ],
}
TABLE = {
    "part": "test",
    "date": "2026-01-01",
    "machine": "a GPU",
    "command": "python benchmarks/ptbxl.py",
    "rows": [ROW],
}


def cells(page: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]


def test_the_page_has_every_score_with_its_interval_and_its_gain() -> None:
    rows = cells(ptbxl_page.page([TABLE], ptbxl_page.published(), "python page.py"))
    linear = "0.900 [0.890, 0.910]; +0.100 [+0.080, +0.120]"
    assert ["cpc, s4d", "3.4 M", "2", "1.5", linear, "", "", linear, "", ""] in rows
    assert [
        "cpc, s4d",
        "fine-tuned",
        "superclass",
        "2",
        linear.replace("0.900 [0.890, 0.910]", "0.930 [0.920, 0.940]"),
    ] in rows
    fractions = [row[2] for row in rows if row[0] == "cpc, s4d" and len(row) == 4]
    assert fractions == ["1 %", "10 %", "100 %"]


def test_every_published_row_is_on_the_page_with_its_source() -> None:
    others = ptbxl_page.published()
    page = ptbxl_page.page([TABLE], others, "python page.py")
    for one in others["rows"]:
        assert set(one["scores"]) <= set(ptbxl.TASKS)
        assert any(
            row[0] == one["name"] and all(f"{value:.3f}" in row for value in one["scores"].values())
            for row in cells(page)
        )
        assert one["source"] in others["sources"]
    assert all(text in page for text in others["sources"].values())


def test_scores_of_fold_9_are_refused() -> None:
    with pytest.raises(ValueError, match="validation"):
        ptbxl_page.page([{**TABLE, "part": "validation"}], ptbxl_page.published(), "")


def test_the_picture_shows_the_figures_and_is_left_out_without_any() -> None:
    drawn = ptbxl_page.label_efficiency([ROW])
    assert drawn is not None
    assert drawn.startswith(b"\x89PNG")
    other = copy.deepcopy(ROW)
    other["scores"][2]["auroc"][0] += 0.02  # type: ignore[index]
    assert ptbxl_page.label_efficiency([other]) != drawn
    assert ptbxl_page.label_efficiency([{**ROW, "scores": ROW["scores"][:2]}]) is None  # type: ignore[index]
